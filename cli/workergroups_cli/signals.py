"""What this process does at a signal, for a while."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def on(number: signal.Signals, act: Callable[[], object]) -> Iterator[None]:
    """Do this at the signal, and afterwards what was done before."""
    before = signal.signal(number, lambda *_: act())
    try:
        yield
    finally:
        signal.signal(number, before)
