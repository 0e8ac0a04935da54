"""The memory of a group's processes on a node."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

MIB = 1024


class Share(NamedTuple):
    """Memory in MiB: each page counts in equal parts for the processes that have it (PSS)."""

    ranks: float
    server: float

    @property
    def total(self) -> float:
        """What the ranks and the fork server have together."""
        return self.ranks + self.server


def share(ranks: Iterable[int], server: int | None) -> Share:
    """Return the memory of the ranks, and of their fork server if there is one, by their process ids."""
    return Share(sum(map(_pss, ranks)), 0 if server is None else _pss(server))


def _pss(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / MIB
