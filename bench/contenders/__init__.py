"""The contenders: each does the same work on the same local Ray, in its own driver process."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Protocol

NAMES = {"raw": "raw Ray", "ours": "workergroups", "verl": "verl 0.9.1"}
"""The modules of this package, and their names in tables and pictures."""

COLUMNS = ("a", "b")
"""A payload is two equal columns of float32, so that a batch is more than one array."""
ROW_ELEMENTS = 1024


def rows_of(payload_bytes: int) -> int:
    """Return the number of rows of a batch of this size."""
    return payload_bytes // (len(COLUMNS) * ROW_ELEMENTS * 4)


class Contender(Protocol):
    """A driver of one kind of group. One group and one batch at a time."""

    def create(self, ranks: int, modules: Sequence[str], tensor_parallel: int) -> None:
        """Reserve resources and start ranks that import these modules; return when all have answered a call."""

    def close(self) -> None:
        """End the ranks and release the resources."""

    def prepare(self, payload_bytes: int) -> None:
        """Create the batch that later calls send."""

    def noop(self) -> None:
        """Call a method that does nothing on all ranks, and wait."""

    def echo(self) -> float:
        """Send each rank its chunk of the batch, get it back, and return one element of the joined result."""

    def add_one(self) -> float:
        """As ``echo``, but each rank adds one to each element in place."""

    def share_by_mesh(self) -> None:
        """Send each tensor-parallel group of ranks its chunk of the batch; the ranks return almost nothing."""


def load(name: str) -> Contender:
    """Return the contender of this name; a failing import is an error."""
    contender: Contender = importlib.import_module(f"{__name__}.{name}").Driver()
    return contender
