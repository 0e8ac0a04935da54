"""What a run shows: memory against the number of events, and whether it rises."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# More than what Python wins or loses from one look to the next. In five minutes there are more than 20,000 events, so a
# leak of 400 bytes for each is more than this.
MOST_MIB = 4.0


@dataclass(frozen=True)
class Sample:
    """One look at the operator's process."""

    seconds: float
    # How many writes of each kind the storm has made so far.
    writes: Mapping[str, int]
    resident_mib: float

    @property
    def events(self) -> int:
        """Writes of all kinds: each is at least one event."""
        return sum(self.writes.values())


def rise_mib(samples: Sequence[Sample]) -> float:
    """Return by how much the memory of the last quarter exceeds that of the second.

    In the first quarter, caches fill. Each quarter counts with its lowest value: a large object that is just being read
    takes some MiB for a moment.
    """
    quarter = len(samples) // 4
    before, after = samples[quarter : 2 * quarter], samples[-quarter:]
    return min(each.resident_mib for each in after) - min(each.resident_mib for each in before)


def rises(samples: Sequence[Sample]) -> bool:
    """Return whether something that was read stays."""
    return rise_mib(samples) > MOST_MIB
