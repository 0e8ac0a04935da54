"""How many groups have each bundle of a pool. The cost depends on the number of ranges, not on that of the bundles."""

from bisect import bisect_left, bisect_right


class Shares:
    """Counts ranges of bundles that overlap."""

    def __init__(self) -> None:
        # From each of these bundles to the next one, all bundles are in as many ranges.
        self._starts = [0]
        self._counts = [0]

    def most(self, start: int, end: int) -> int:
        """Return in how many ranges that bundle is that is in most, of those from `start` and before `end`."""
        return max(self._counts[bisect_right(self._starts, start) - 1 : bisect_left(self._starts, end)])

    def add(self, start: int, end: int) -> None:
        """Count a range: its bundles from `start` and before `end`."""
        for index in range(self._split(start), self._split(end)):
            self._counts[index] += 1

    def _split(self, at: int) -> int:
        """Return the index of the bundle among the starts, which it becomes if it is none."""
        index = bisect_left(self._starts, at)
        if index == len(self._starts) or self._starts[index] != at:
            self._starts.insert(index, at)
            self._counts.insert(index, self._counts[index - 1])
        return index
