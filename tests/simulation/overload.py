"""When the machine was too busy for bounds in seconds."""

import time
from dataclasses import dataclass

# The API server answers within milliseconds, and so does a task wake. If either is later, the machine is too busy.
LATE_SECONDS = 0.7


@dataclass
class Overload:
    """Counts the seconds in which something was late: around them, a history ignores bounds in seconds."""

    last: float = 0.0
    count: int = 0

    def note(self, took: float, expected: float = 0.0) -> None:
        """Compare how many seconds an answer or a sleep took with what was expected."""
        if took - expected > LATE_SECONDS:
            now = time.monotonic()
            self.count += now - self.last > 1.0
            self.last = now
