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


def backoff_seconds(failures: int, first: float, most: float) -> float:
    """Return the pause after that many failures in a row: `first` after one, doubled by each more, at most `most`."""
    # So many doublings reach any `most` that makes sense; a float has no room for many more.
    return min(most, first * 2.0 ** min(failures - 1, 64)) if failures > 0 else 0.0
