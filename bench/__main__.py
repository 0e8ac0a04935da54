"""Measure, print the table, and draw the picture: ``python -m bench [PICTURE] [TABLE]``, the two files to write."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from . import cluster
from . import points as measure
from .picture import draw
from .points import Point
from .table import environment, markdown

ALL = ("raw", "ours", "verl")
WITHOUT_VERL = ("raw", "ours")
"""verl's ranks import transformers: 32 of them take more memory than the machine that this was made for has."""
TENSORS = ("numpy", "torch", "tensordict")
"""What the ranks of every contender import."""
OBJECT_STORE_BYTES = 6 * 2**30
# The targets: a call, a batch, the driver's memory, stored chunks (and what pickle adds), and a group's creation.
NOOP, ECHO, MEMORY, PUT, CREATION = 1.10, 1.6, 1.3, 1.001, 1.15


def four_ranks(address: str) -> list[Point]:
    """The comparisons with targets, and payloads of 1 MiB to 1 GiB."""
    with measure.groups(address, ALL, 4, TENSORS) as started:
        return [
            *measure.driver_memory(started, 4, 256, MEMORY),  # first, while the drivers are fresh
            *measure.noop(started, 4, 31, NOOP),
            *measure.echo(started, 4, 1, 15),
            *measure.echo(started, 4, 16, 11),
            *measure.echo(started, 4, 256, 21, ECHO),
            *measure.add_one(started, 4, 256, 11),
            *measure.echo(started, 4, 1024, 5),
        ]


def creations(address: str) -> list[Point]:
    """Groups of 4, 8 and 32 ranks, made and ended again and again."""
    with measure.drivers(address, ALL) as started:
        found = measure.creation(started, 4, TENSORS, 5, CREATION) + measure.creation(started, 8, TENSORS, 1)
    with measure.drivers(address, WITHOUT_VERL) as started:
        return found + measure.creation(started, 32, (), 2)


def eight_ranks(address: str) -> list[Point]:
    """The mesh, and the same calls on more ranks; two contenders at a time, since all ranks together do not fit."""
    return [
        point
        for contenders in (WITHOUT_VERL, ("raw", "verl"))
        for point in _eight_ranks(address, contenders)
        if contenders == WITHOUT_VERL or point.contender != "raw"
    ]


def _eight_ranks(address: str, contenders: Sequence[str]) -> list[Point]:
    with measure.groups(address, contenders, 8, TENSORS, tensor_parallel=4) as started:
        return [
            *measure.bytes_put(started, 2, 4, 256, PUT),
            *measure.noop(started, 8, 15),
            *measure.echo(started, 8, 256, 6),
        ]


def thirty_two_ranks(address: str) -> list[Point]:
    """Ranks that import nothing of their own, so that they fit."""
    with measure.groups(address, WITHOUT_VERL, 32, ()) as started:
        return measure.noop(started, 32, 15) + measure.echo(started, 32, 256, 5)


def write(found: Sequence[Point]) -> None:
    """What was measured so far: the table and, once there is something to compare in each chart, the picture."""
    table = f"{environment()}\n\n{markdown(found)}"
    print(table, flush=True)
    if len(sys.argv) > 1 and any(point.comparison == "group creation" for point in found):
        draw(found, Path(sys.argv[1]))
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(table)


def main() -> None:
    """Run all comparisons."""
    found: list[Point] = []
    with cluster.local_ray(OBJECT_STORE_BYTES) as address:
        for part in (four_ranks, eight_ranks, thirty_two_ranks, creations):
            found += part(address)
            write(found)
    if missed := [point for point in found if point.missed]:
        sys.exit("missed: " + "; ".join(f"{p.comparison} {p.ratio:.2f}x, not {p.target}x" for p in missed))


if __name__ == "__main__":
    main()
