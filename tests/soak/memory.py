"""What a run shows: memory against the number of events, and whether it rises."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

# More than what Python wins or loses from one look to the next. Ten minutes have more than 100,000 events, so
# a leak of 40 bytes for each is more than this.
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

    In the first quarter, caches fill. Each quarter counts with its median.
    """
    quarter = len(samples) // 4
    before, after = samples[quarter : 2 * quarter], samples[-quarter:]
    return median(each.resident_mib for each in after) - median(each.resident_mib for each in before)


def rises(samples: Sequence[Sample]) -> bool:
    """Return whether something that was read stays."""
    return rise_mib(samples) > MOST_MIB
