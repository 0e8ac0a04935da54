"""Read what was planned: from all ranks at once, right to its place where the pieces are large enough."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from workergroups.errors import WeightsError
from workergroups.lazy import torch
from workergroups.transfers.fetching import UnreadableError, fetch
from workergroups.transfers.memory import Span, as_bytes, as_integers, is_plain_memory, memory_for

from .parts import Part
from .planning import Read, Sources, Wanted, direct, place, with_gaps
from .published import HeldShard
from .regions import strides

BUCKET = 2**29
"""Bytes of memory for what does not arrive where it stays."""
_T = TypeVar("_T")


class _Indirect(NamedTuple):
    """A box that is read with its gaps, and then copied to its place."""

    read: Read
    part: Part
    dtype: Any

    @property
    def nbytes(self) -> int:
        return with_gaps(self.read)[1] * int(self.dtype.itemsize)


def read_parts(sources: Sources, parts: Mapping[str, Part], deadline: float) -> None:
    """Fill the parts with what was published.

    Raises:
        WeightsError: It was not published, cannot be read, or has not arrived by the deadline (of the monotonic clock).
    """
    spans: dict[int, list[Span]] = {}
    indirect: list[_Indirect] = []
    for part in parts.values():
        plan = sources.plan(part.wanted)
        fits = part.local.is_contiguous() and plan.dtype == part.wanted.dtype and is_plain_memory(part.local)
        for read in plan.reads:
            pieces = direct(read, part.wanted) if fits else None
            if pieces is None:
                indirect.append(_Indirect(read, part, plan.dtype))
                continue
            memory = as_bytes(part.local)
            spans.setdefault(read.source, []).extend(
                Span(read.shard, piece.start, memory[piece.into : piece.into + piece.nbytes]) for piece in pieces
            )
    _transfer(sources, spans, deadline)
    for bucket in buckets(indirect, lambda each: each.nbytes):
        _read_with_gaps(sources, bucket, deadline)


def unchanged(sources: Sources, parts: Mapping[str, Part], before: Iterable[HeldShard]) -> dict[str, HeldShard]:
    """Return which of the parts were received before with the bits that are published now, by name."""
    known = {Wanted(*shard[:-1]): shard for shard in before}
    found = {name: known[part.wanted] for name, part in parts.items() if part.wanted in known}
    return {name: shard for name, shard in found.items() if sources.digest(Wanted(*shard[:-1])) == shard.digest}


def checked(sources: Sources, now: Iterable[HeldShard]) -> None:
    """Compare what has arrived with what was published.

    Raises:
        WeightsError: It has other bits.
    """
    for shard in now:
        expected = sources.digest(Wanted(*shard[:-1]))
        if expected is not None and expected != shard.digest:
            reads = sources.plan(Wanted(*shard[:-1])).reads
            ranks = ", ".join(sorted({sources.name(read.source) for read in reads}))
            raise WeightsError(
                f"{shard.name!r} of version {sources.version} arrived with other bits than {ranks} published: it "
                "changed while it was read. Receive weights before the trainer's next step"
            )


def buckets(items: Iterable[_T], nbytes: Any) -> Iterator[list[_T]]:
    """Yield the items in groups that take `BUCKET` bytes together, or one that takes more."""
    bucket: list[_T] = []
    size = 0
    for item in items:
        if bucket and size + nbytes(item) > BUCKET:
            yield bucket
            bucket, size = [], 0
        bucket.append(item)
        size += nbytes(item)
    if bucket:
        yield bucket


def _read_with_gaps(sources: Sources, bucket: Sequence[_Indirect], deadline: float) -> None:
    layouts = [(each.dtype, with_gaps(each.read)[1]) for each in bucket]
    local = bucket[0].part.local
    buffers = memory_for(layouts, local.device if is_plain_memory(local) else "cpu")
    spans: dict[int, list[Span]] = {}
    for each, buffer in zip(bucket, buffers, strict=True):
        start = with_gaps(each.read)[0] * each.dtype.itemsize
        spans.setdefault(each.read.source, []).append(Span(each.read.shard, start, as_bytes(buffer)))
    _transfer(sources, spans, deadline)
    for each, buffer in zip(bucket, buffers, strict=True):
        with torch.inference_mode():  # a target that was made in it is written to only in it
            starts, sizes = place(each.read, each.part.wanted)
            target = each.part.local
            if each.dtype == target.dtype:
                target, buffer = as_integers(target), as_integers(buffer)
            for dim, (start, size) in enumerate(zip(starts, sizes, strict=True)):
                target = target.narrow(dim, start, size)
            target.copy_(buffer.as_strided(sizes, strides(each.read.held.size)))


def _transfer(sources: Sources, spans: Mapping[int, list[Span]], deadline: float) -> None:
    wanted = [(sources.source(source), each) for source, each in spans.items()]
    try:
        fetch(wanted, deadline)
    except UnreadableError as error:
        raise WeightsError(
            f"version {sources.version} {error}. If a rank was replaced or has published again, receive that"
        ) from error
