"""How long to wait before the next try: the one back-off of operator and agent."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Backoff:
    """Pauses in seconds, which grow while something keeps failing.

    Where events cause tries, `pause` counts the time, since a busy moment causes many. Where nothing but the pause
    decides when the next try begins, `after` counts the failures.
    """

    # The shortest and the longest pause.
    first: float
    last: float
    # Each pause is this part of the time so far. With 1, the time so far doubles from try to try.
    part: float = 1.0

    def pause(self, lasted: float) -> float:
        """Return the seconds before the next try of what has failed, or stayed the same, for `lasted` seconds."""
        return min(self.last, max(self.first, self.part * lasted))

    def after(self, failures: int) -> float:
        """Return the seconds before the next try after that many failures in a row; each one doubles the pause."""
        # That many doublings reach any longest pause that makes sense; a float has no room for many more.
        return min(self.last, self.first * 2.0 ** min(failures - 1, 64)) if failures > 0 else 0.0
