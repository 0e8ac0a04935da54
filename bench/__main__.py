"""Measure, and publish: ``python -m bench [DOCS]``, the folder of benchmarks.md and its picture."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from . import cluster
from . import points as measure
from .picture import draw
from .points import Point
from .table import environment, markdown, publish

PAIRS = (("raw", "ours"), ("raw", "verl"))
"""Two contenders at a time: the ranks and batches of all three do not fit into 24 GiB."""
TENSORS = ("numpy", "torch", "tensordict")
"""What the ranks of every contender import."""
OBJECT_STORE_BYTES = 6 * 2**30
# The targets: a call, a batch, the driver's memory, stored chunks (and what pickle adds), and a group's creation.
NOOP, ECHO, MEMORY, PUT, CREATION = 1.10, 1.6, 1.3, 1.001, 1.15


def four_ranks(address: str, pair: Sequence[str], share: int) -> list[Point]:
    """Measure the comparisons that have targets, and payloads of 1 MiB to 1 GiB."""
    with measure.groups(address, pair, 4, TENSORS) as started:
        return [
            *measure.driver_memory(started, 4, 256, MEMORY),  # first, while the drivers are fresh
            *measure.noop(started, 4, 100 // share, NOOP),
            *measure.echo(started, 4, 1, 16 // share),
            *measure.echo(started, 4, 16, 16 // share),
            *measure.echo(started, 4, 256, 60 // share, ECHO),
            *measure.add_one(started, 4, 256, 12 // share),
            # At 1 GiB, verl's copies do not fit.
            *(measure.echo(started, 4, 1024, 12) if "verl" not in pair else []),
        ]


def eight_ranks(address: str, pair: Sequence[str], share: int) -> list[Point]:
    """Measure the mesh, and the same calls on more ranks."""
    with measure.groups(address, pair, 8, TENSORS, tensor_parallel=4) as started:
        return [
            *measure.bytes_put(started, 2, 4, 256, PUT),
            *measure.noop(started, 8, 16 // share),
            *measure.echo(started, 8, 256, 12 // share),
        ]


def thirty_two_ranks(address: str, pair: Sequence[str], share: int) -> list[Point]:
    """Measure ranks that import nothing else, so that they fit into memory; verl's do not fit."""
    if "verl" in pair:
        return []
    with measure.groups(address, pair, 32, ()) as started:
        return measure.noop(started, 32, 16 // share) + measure.echo(started, 32, 256, 8 // share)


def creations(address: str, pair: Sequence[str], share: int) -> list[Point]:
    """Create and end groups of 4, 8 and 32 ranks repeatedly; for verl only 4, which takes minutes."""
    with measure.drivers(address, pair) as started:
        found = measure.creation(started, 4, TENSORS, max(1, 3 // share), CREATION)
        if "verl" not in pair:
            found += measure.creation(started, 8, TENSORS, 1) + measure.creation(started, 32, (), 2)
        return found


def main() -> None:
    """Run all comparisons."""
    found: list[Point] = []
    with cluster.local_ray(OBJECT_STORE_BYTES) as address:
        for part in (four_ranks, eight_ranks, thirty_two_ranks, creations):
            for pair in PAIRS:
                # verl has no target, and takes most of the time; raw Ray's figures are those of the first pair.
                points = part(address, pair, 4 if "verl" in pair else 1)
                found += [point for point in points if "verl" not in pair or point.contender == "verl"]
            # Print this now, in case a later part fails.
            print(f"{environment()}\n\n{markdown(found)}", flush=True)
    if len(sys.argv) > 1:
        docs = Path(sys.argv[1])
        publish(found, docs / "benchmarks.md")
        draw(found, docs / "benchmarks.svg")
    if missed := [point for point in found if point.missed]:
        sys.exit("missed: " + "; ".join(f"{p.comparison} {p.ratio:.2f}x, not {p.target}x" for p in missed))


if __name__ == "__main__":
    main()
