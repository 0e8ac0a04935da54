"""Show the progress of a long wait at a terminal. Nothing is written to logs."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayTaskError

_QUIET_FOR = 2.0
"""Seconds before progress is shown."""
_REFRESH = 1.0
_CLEAR_LINE = "\r\x1b[K"


def get(output: Any, *, timeout: float | None, describe: Callable[[], str]) -> Any:
    """Like ``ray.get``; at a terminal, show what ``describe`` returns every second during a long wait."""
    if sys.stderr is None or not sys.stderr.isatty():
        return ray.get(output, timeout=timeout)
    started = time.monotonic()
    with _line() as show:
        pause = _QUIET_FOR
        while True:
            remaining = None if timeout is None else max(0.0, started + timeout - time.monotonic())
            try:
                return ray.get(output, timeout=pause if remaining is None else min(pause, remaining))
            except RayTaskError:
                raise  # the method's own exception, which may be a GetTimeoutError as well
            except GetTimeoutError:
                if remaining is not None and remaining <= pause:
                    raise
            show(f"{describe()} ({time.monotonic() - started:.0f} s)")
            pause = _REFRESH


@contextlib.contextmanager
def _line() -> Iterator[Callable[[str], None]]:
    """Return a function that shows a text in one line of the terminal, which is cleared at the end."""
    shown = False

    def show(text: str) -> None:
        nonlocal shown
        shown = True
        sys.stderr.write(_CLEAR_LINE + text)
        sys.stderr.flush()

    try:
        yield show
    finally:
        if shown:
            show("")
