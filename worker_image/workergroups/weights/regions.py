"""Boxes within a tensor, and where their elements are in memory. Pure: it knows no torch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

Shape = tuple[int, ...]


class Region(NamedTuple):
    """A box within a tensor."""

    start: Shape
    """The index of its first element, by dimension."""
    size: Shape
    """Its length, by dimension."""

    @classmethod
    def whole(cls, shape: Shape) -> Region:
        """Return all of a tensor of this shape."""
        return cls((0,) * len(shape), shape)

    @property
    def elements(self) -> int:
        """How many there are."""
        return math.prod(self.size)

    def within(self, shape: Shape) -> bool:
        """Return whether a tensor of this shape has the whole box."""
        return len(self.start) == len(self.size) == len(shape) and all(
            start >= 0 and size >= 0 and start + size <= length
            for start, size, length in zip(self.start, self.size, shape, strict=True)
        )

    def common(self, other: Region) -> Region | None:
        """Return the elements of both; ``None`` if there are none."""
        starts = tuple(map(max, self.start, other.start))
        ends = map(min, self._ends(), other._ends())
        sizes = tuple(end - start for start, end in zip(starts, ends, strict=True))
        return None if any(size <= 0 for size in sizes) else Region(starts, sizes)

    def without(self, other: Region) -> list[Region]:
        """Return disjoint boxes of the elements that the other one lacks."""
        common = self.common(other)
        if common is None:
            return [self]
        left: list[Region] = []
        start, size = list(self.start), list(self.size)
        for dim, (first, length) in enumerate(zip(common.start, common.size, strict=True)):
            before, after = first - start[dim], start[dim] + size[dim] - first - length
            if before:
                left.append(Region(tuple(start), (*size[:dim], before, *size[dim + 1 :])))
            if after:
                left.append(
                    Region((*start[:dim], first + length, *start[dim + 1 :]), (*size[:dim], after, *size[dim + 1 :]))
                )
            start[dim], size[dim] = first, length
        return left

    def _ends(self) -> Iterator[int]:
        return (start + size for start, size in zip(self.start, self.size, strict=True))


def strides(size: Shape) -> Shape:
    """Return the steps in memory, in elements, of a contiguous array of this size."""
    return tuple(math.prod(size[dim + 1 :]) for dim in range(len(size)))


def offset(index: Shape, holder: Region) -> int:
    """Return where an element is in the contiguous array that holds a region, in elements."""
    steps = strides(holder.size)
    return sum((at - start) * step for at, start, step in zip(index, holder.start, steps, strict=True))


def run_length(box: Region, *holders: Region) -> int:
    """Return how many elements of a box are consecutive in each of the contiguous arrays that hold it."""
    length = 1
    for dim in reversed(range(len(box.size))):
        length *= box.size[dim]
        if any(holder.size[dim] != box.size[dim] for holder in holders):
            break
    return length


def run_offsets(box: Region, length: int, holder: Region) -> Iterator[int]:
    """Return where each run of ``length`` elements of a box begins in the array that holds it, in one order for all."""
    inner, dim = 1, len(box.size)
    while inner < length:
        dim -= 1
        inner *= box.size[dim]
    for index in itertools.product(*(range(size) for size in box.size[:dim])):
        first = (*(start + at for start, at in zip(box.start, index, strict=False)), *box.start[dim:])
        yield offset(first, holder)


def span(box: Region, holder: Region) -> tuple[int, int]:
    """Return the first element of a box in the array that holds it, and the number of elements up to its last one."""
    first = offset(box.start, holder)
    last = offset(tuple(start + size - 1 for start, size in zip(box.start, box.size, strict=True)), holder)
    return first, last - first + 1


def cover(wanted: Region, holders: Sequence[Region]) -> tuple[list[tuple[int, Region]], list[Region]]:
    """Choose from which holder each element of a region is taken: the first in order that has it.

    Returns:
        For each part, the index of its holder; and the boxes that nobody holds.
    """
    taken: list[tuple[int, Region]] = []
    left = [wanted] if wanted.elements else []
    for index, holder in enumerate(holders):
        if not left:
            break
        taken += [(index, common) for box in left if (common := box.common(holder)) is not None]
        left = [rest for box in left for rest in box.without(holder)]
    return taken, left


def made_of(wanted: Region, holders: Sequence[Region]) -> list[int] | None:
    """Return the indices of holders that make up exactly a region, without a rest; ``None`` if there are none."""
    inside = [at for at, holder in enumerate(holders) if holder.common(wanted) == holder]
    taken, missing = cover(wanted, [holders[at] for at in inside])
    if missing or any(box != holders[inside[at]] for at, box in taken):
        return None
    return [inside[at] for at, _ in taken]
