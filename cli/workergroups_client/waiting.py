"""Waiting: always until a deadline, and always saying what for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

Tell = Callable[[str], None]
"""Takes a sentence about what is being waited for, and why; the same one may come many times."""

_PAUSE = 0.5


def silently(_: str) -> None:
    """Tell nobody."""


def look_again(seconds: float, pause: float = _PAUSE) -> Iterator[float]:
    """At once, and again after each pause until the time is up: the seconds that are left."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        yield left
        time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
