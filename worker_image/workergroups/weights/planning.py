"""Who reads what from whom. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

from workergroups.errors import WeightsError
from workergroups.transfers.fetching import Source

from .published import HeldShard, PublishedWeights
from .regions import Region, Shape, cover, made_of, run_length, run_offsets, span

_WORTHWHILE = 64 * 2**10
"""Bytes without a gap that are worth their own read. What has shorter ones is read with the gaps."""


class Wanted(NamedTuple):
    """A part of a tensor that a rank reads."""

    name: str
    dtype: Any
    shape: Shape
    """The shape of the whole tensor."""
    region: Region


class Read(NamedTuple):
    """Elements that one rank reads from one shard of another."""

    source: int
    """The number of the rank that published the shard."""
    shard: int
    """Its number among that rank's shards."""
    held: Region
    """What the shard has."""
    box: Region
    """What is read of it."""


class Plan(NamedTuple):
    """How a rank gets a part of a tensor."""

    dtype: Any
    """The type that was published."""
    reads: list[Read]
    same: list[tuple[int, int]] | None
    """Shards that make up exactly this part, by rank and number; ``None`` if there are none."""


class Plans:
    """Plans that hold until ranks publish other parts, or other ranks do: for each step of a training, the same."""

    def __init__(self) -> None:
        self._layouts: object = None
        self._plans: dict[Wanted, Plan] = {}

    def of(self, layouts: object) -> dict[Wanted, Plan]:
        """Return the known plans for these layouts."""
        if layouts != self._layouts:
            self._layouts, self._plans = layouts, {}
        return self._plans


class Sources:
    """What ranks have published, and how one rank gets it.

    Args:
        published: What they published; ``None`` of ranks that have none.
        node: The node of the rank that reads.
        reader: Its number in its group.
        plans: Of its earlier reads.

    Raises:
        WeightsError: They published different versions.
    """

    def __init__(self, published: Sequence[PublishedWeights | None], node: str, reader: int, plans: Plans) -> None:
        self._published = [each for each in published if each is not None]
        self._node = node
        self._reader = reader
        self.version = _one_version(self._published)
        self._plans = plans.of((node, reader, [(each.node, each.passport.layout) for each in self._published]))

    @cached_property
    def wholes(self) -> list[Wanted]:
        """All tensors, each as a whole, in the order of the ranks that published them."""
        firsts = (held[0][2] for held in self._by_name.values())
        return [Wanted(shard.name, shard.dtype, shard.shape, Region.whole(shard.shape)) for shard in firsts]

    def plan(self, wanted: Wanted) -> Plan:
        """Return how to get a part of a tensor: from this node if it is there, and from all replicas in turn.

        Raises:
            WeightsError: Nobody published it, or only in parts, or with another shape.
        """
        if wanted not in self._plans:
            held = self._held(wanted)
            in_turn = self._in_turn(held)
            self._plans[wanted] = Plan(held[0][2].dtype, self._reads(wanted, in_turn), _same(wanted, held, in_turn))
        return self._plans[wanted]

    def digest(self, wanted: Wanted) -> int | None:
        """Return which digest a part must have; ``None`` if its shards' do not tell, or if its type is converted."""
        same = self.plan(wanted).same
        if same is None or self.plan(wanted).dtype != wanted.dtype:
            return None
        return sum(self._published[source].passport.shards[number].digest for source, number in same) % 2**64

    def name(self, source: int) -> str:
        """Return what the rank is called in messages."""
        return self._published[source].passport.rank

    def is_near(self, source: int) -> bool:
        """Return whether the rank is on this node."""
        return self._published[source].node == self._node

    def source(self, number: int) -> Source:
        """Return how the rank's shards are read."""
        published = self._published[number]
        return Source(published.passport.rank, published.node, published.address)

    @cached_property
    def _by_name(self) -> dict[str, list[tuple[int, int, HeldShard]]]:
        found: dict[str, list[tuple[int, int, HeldShard]]] = {}
        for source, weights in enumerate(self._published):
            for number, shard in enumerate(weights.passport.shards):
                found.setdefault(shard.name, []).append((source, number, shard))
        return found

    def _held(self, wanted: Wanted) -> list[tuple[int, int, HeldShard]]:
        held = self._by_name.get(wanted.name)
        if held is None:
            known = ", ".join(sorted(self._by_name)[:5])
            raise WeightsError(
                f"no rank published {wanted.name!r}; there are {len(self._by_name)} tensors: {known}, ..."
            )
        first = held[0][2]
        if first.shape != wanted.shape:
            raise WeightsError(f"{wanted.name!r} was published with the shape {first.shape}, not {wanted.shape}")
        for source, _, shard in held:
            if (shard.shape, shard.dtype) != (first.shape, first.dtype):
                raise WeightsError(
                    f"{wanted.name!r} is {first.dtype} of shape {first.shape} on {self.name(held[0][0])}, and "
                    f"{shard.dtype} of shape {shard.shape} on {self.name(source)}"
                )
        return held

    def _in_turn(self, held: list[tuple[int, int, HeldShard]]) -> list[tuple[int, int, HeldShard]]:
        """Return the holders in the order in which they are read from: of replicas, only the first one."""
        turn = self._reader + held[0][1]
        return sorted(held, key=lambda each: (not self.is_near(each[0]), (each[0] + turn) % len(self._published)))

    def _reads(self, wanted: Wanted, held: list[tuple[int, int, HeldShard]]) -> list[Read]:
        taken, missing = cover(wanted.region, [shard.region for _, _, shard in held])
        if missing:
            raise WeightsError(
                f"of {wanted.name!r}, {sum(box.elements for box in missing)} of {wanted.region.elements} elements were "
                f"published by no rank (from {missing[0].start}): pass what all ranks of the group published"
            )
        return [Read(held[at][0], held[at][1], held[at][2].region, box) for at, box in taken]


def _same(
    wanted: Wanted, held: list[tuple[int, int, HeldShard]], in_turn: list[tuple[int, int, HeldShard]]
) -> list[tuple[int, int]] | None:
    regions = list(dict.fromkeys(shard.region for _, _, shard in held))
    # Of replicas, the digest of the one that is read: others may differ.
    shards = {shard.region: (source, number) for source, number, shard in reversed(in_turn)}
    parts = made_of(wanted.region, regions)
    return None if parts is None else [shards[regions[at]] for at in parts]


class Piece(NamedTuple):
    """Bytes of one read that follow each other, in the shard and in the memory that they are read into."""

    start: int
    into: int
    nbytes: int


def direct(read: Read, wanted: Wanted) -> list[Piece] | None:
    """Return the pieces in which a box is read right to its place; ``None`` if they are too small for that."""
    width = wanted.dtype.itemsize
    length = run_length(read.box, read.held, wanted.region)
    if length * width < _WORTHWHILE and length < read.box.elements:
        return None
    starts = run_offsets(read.box, length, read.held)
    ends = run_offsets(read.box, length, wanted.region)
    return [Piece(start * width, into * width, length * width) for start, into in zip(starts, ends, strict=True)]


def with_gaps(read: Read) -> tuple[int, int]:
    """Return the first element of the shard that is read, and the number of elements, gaps included."""
    return span(read.box, read.held)


def place(read: Read, wanted: Wanted) -> tuple[Shape, Shape]:
    """Return where a box begins in the memory of what was wanted, and its size."""
    starts = zip(read.box.start, wanted.region.start, strict=True)
    return tuple(start - first for start, first in starts), read.box.size


def _one_version(published: Sequence[PublishedWeights]) -> int:
    if not published:
        raise WeightsError("nothing to receive: pass the list of what each rank's publish() returned")
    versions = {weights.passport.version: weights.passport.rank for weights in published}
    if len(versions) > 1:
        listed = " and ".join(f"{version} ({rank})" for version, rank in sorted(versions.items()))
        raise WeightsError(
            f"the ranks published different versions, {listed}: publish on all of them in one call. If a call "
            f"has failed on some ranks, pass all of them the same number, such as version={max(versions) + 1}"
        )
    return next(iter(versions))
