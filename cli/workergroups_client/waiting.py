"""Wait until a deadline, and tell the user what for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

Tell = Callable[[str], None]
"""Called with progress messages; the same message may come many times."""

_PAUSE = 0.5


class Lasting(str):
    """A progress message with a fact that must stay on the screen when what follows it is shown."""


def silently(_: str) -> None:
    """Ignore a progress message."""


def look_again(seconds: float, pause: float = _PAUSE) -> Iterator[float]:
    """Yield the seconds that are left, at once and after each pause, until the time is up."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        yield left
        time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
