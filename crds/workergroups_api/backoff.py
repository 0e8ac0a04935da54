"""How long to wait before the next try: the one back-off of operator and agent. It needs only the standard library."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Backoff:
    """Pauses in seconds, which grow with the time that something has lasted.

    They depend on the time and not on the number of tries: in a busy moment, events can cause many tries.
    """

    # The shortest and the longest pause.
    first: float
    last: float
    # Each pause is this part of the time so far. With 1, the time so far doubles from try to try.
    part: float = 1.0

    def pause(self, lasted: float) -> float:
        """Return the seconds before the next try of what has failed, or stayed the same, for `lasted` seconds."""
        return min(self.last, max(self.first, self.part * lasted))
