"""How the ranks of a WorkerGroup are named in Ray, so that anyone on the cluster finds them again."""

from __future__ import annotations

import re
from dataclasses import dataclass

NAMESPACE = "workergroups"
"""The one Ray namespace that holds the ranks of every WorkerGroup of a cluster."""

_PATTERN = re.compile(r"(?P<group>[^/]+)/(?P<uid>[^/]+)/(?P<incarnation>\d+)/(?P<rank>\d+)-of-(?P<world_size>\d+)")


@dataclass(frozen=True)
class RankName:
    """The Ray actor name of one rank: ``{group}/{uid}/{incarnation}/{rank}-of-{world_size}``."""

    group: str
    """The WorkerGroup's name, which users attach to."""
    uid: str
    """The WorkerGroup object's UID: a group that was deleted and made again has another."""
    incarnation: int
    """How often the group's ranks were started, from 1: a higher one fences the ones before it."""
    rank: int
    world_size: int
    """The number of ranks in this incarnation; each name tells how many others there must be."""

    def __str__(self) -> str:
        return f"{self.group}/{self.uid}/{self.incarnation}/{self.rank}-of-{self.world_size}"

    @classmethod
    def parse(cls, text: str) -> RankName | None:
        """Read a Ray actor name; ``None`` for an actor that is no rank of a WorkerGroup."""
        match = _PATTERN.fullmatch(text)
        if match is None:
            return None
        return cls(
            group=match["group"],
            uid=match["uid"],
            incarnation=int(match["incarnation"]),
            rank=int(match["rank"]),
            world_size=int(match["world_size"]),
        )
