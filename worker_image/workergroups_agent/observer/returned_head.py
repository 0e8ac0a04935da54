"""Whether a head that has returned knows what ended while it was away: until then, the observer reports nothing."""

import time
from collections.abc import Callable

from workergroups_agent.ray_state import RayState

SETTLE_SECONDS = 3.0
"""For so long, its GCS may count ranks as alive that have died: their raylets connect to it again."""
MOVED_SECONDS = 45.0
"""As long as that if they must look up its name: gRPC does so once in 30 s, and 45 s were seen."""
AWAY_SECONDS = 1.5
"""If no look succeeds for so long, the GCS may have been away."""


class ReturnedHead:
    """Remembers when the present head was first seen, and when its GCS last came back."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, time_of_day: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._time_of_day = time_of_day
        self._head: str | None = None
        self._since = self._seen = clock()

    def knows_its_ranks(self, state: RayState) -> bool:
        """Return whether what was just read from the GCS is how the ranks are now."""
        now = self._clock()
        if state.head != self._head or now - self._seen > AWAY_SECONDS:
            self._since = now
        self._head, self._seen = state.head, now
        if not state.is_continued:
            return True
        has_moved = state.moved_at is not None and self._time_of_day() < state.moved_at + MOVED_SECONDS
        return now - self._since >= (MOVED_SECONDS if has_moved else SETTLE_SECONDS)
