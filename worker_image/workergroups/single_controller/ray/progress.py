"""Showing a person at a terminal how far a long wait is. Logs stay quiet: nothing is written where nobody watches."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayTaskError

_QUIET_FOR = 2.0
"""Seconds for which a wait is not worth mentioning."""
_REFRESH = 1.0
_CLEAR_LINE = "\r\x1b[K"


def get(output: Any, *, timeout: float | None, describe: Callable[[], str]) -> Any:
    """As ``ray.get``; where a person watches a long wait, a line that says what ``describe`` returns, each second."""
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
    """Writes texts over each other in one line of the terminal, which is empty again at the end."""
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
