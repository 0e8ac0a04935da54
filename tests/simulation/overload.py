"""When the machine was too busy to judge a status by seconds."""

import time
from dataclasses import dataclass

# The API server answers within milliseconds, and a sleeping task wakes as soon. Later than this, the machine starves.
LATE_SECONDS = 0.7


@dataclass
class Overload:
    """Counts the seconds in which something came late: around them, a history excuses what bounds of seconds forbid."""

    last: float = 0.0
    count: int = 0

    def note(self, took: float, expected: float = 0.0) -> None:
        """Compare how many seconds an answer or a sleep took with what was expected."""
        if took - expected > LATE_SECONDS:
            now = time.monotonic()
            self.count += now - self.last > 1.0
            self.last = now
