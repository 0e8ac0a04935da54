"""Handle a signal for the duration of a block."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def on(number: signal.Signals, act: Callable[[], object]) -> Iterator[None]:
    """Call ``act`` at the signal during the block, and restore the former handler afterwards."""
    before = signal.signal(number, lambda *_: act())
    try:
        yield
    finally:
        signal.signal(number, before)
