"""The names in Ray of a WorkerGroup's ranks and a ResourcePool's placement groups.

By these names, drivers, the agent and the command line find them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

NAMESPACE = "workergroups"
"""The one Ray namespace that holds the ranks of every WorkerGroup of a cluster."""
NODE_GROUP_LABEL = "ray.io/node-group"
"""Ray's label of a node that names its KubeRay worker group, and so its pool."""

# Users may give their actors and placement groups any name, so all parts are bounded. The parts of our names are names
# and UIDs of Kubernetes, and Ray's node ids; a program on a laptop may use any ASCII that is printed.
_NAME, _UID, _NUMBER = "[!-.0-~]{1,253}", "[!-.0-~]{1,64}", "[0-9]{1,9}"
_RANK = re.compile(
    f"(?P<group>{_NAME})/(?P<uid>{_UID})/(?P<incarnation>{_NUMBER})/(?P<rank>{_NUMBER})-of-(?P<world_size>{_NUMBER})"
    "(/(?P<birth>[1-9][0-9]{0,8}))?"
)
_PLACEMENT = re.compile(f"(?P<pool>{_NAME})/(?P<uid>{_UID})/(?P<index>{_NUMBER})/(?P<node_id>{_UID})")


@dataclass(frozen=True)
class RankName:
    """The Ray actor name of one rank: ``{group}/{uid}/{incarnation}/{rank}-of-{world_size}``, and its birth if any."""

    group: str
    """The WorkerGroup's name, which users attach to."""
    uid: str
    """The WorkerGroup object's UID, which changes if the group is deleted and recreated."""
    incarnation: int
    """How often the group's ranks have been created, from 1: a higher incarnation fences lower ones."""
    rank: int
    world_size: int
    """The number of ranks in this incarnation, so that each name tells how many ranks there must be."""
    birth: int = 0
    """With which of the group's restarts the rank was created alone; 0 if it was created with its incarnation."""

    def __str__(self) -> str:
        whole = f"{self.group}/{self.uid}/{self.incarnation}/{self.rank}-of-{self.world_size}"
        return f"{whole}/{self.birth}" if self.birth else whole

    @property
    def incarnation_key(self) -> str:
        """What all ranks of this incarnation have in common, and no others."""
        return f"{self.uid}/{self.incarnation}"

    @classmethod
    def parse(cls, text: str) -> RankName | None:
        """Parse a Ray actor name; return ``None`` if the actor is not a rank of a WorkerGroup."""
        match = _RANK.fullmatch(text)
        if match is None or int(match["rank"]) >= int(match["world_size"]):
            return None
        return cls(
            group=match["group"],
            uid=match["uid"],
            incarnation=int(match["incarnation"]),
            rank=int(match["rank"]),
            world_size=int(match["world_size"]),
            birth=int(match["birth"] or 0),
        )


def latest_births(names: Iterable[RankName]) -> dict[int, RankName]:
    """Return the name of each rank that was created last, by rank; all must be of one incarnation."""
    return {name.rank: name for name in sorted(names, key=lambda name: name.birth)}


@dataclass(frozen=True)
class PlacementName:
    """The placement group of one node of a pool, on one Ray node.

    The Ray node is part of the name: on another node, it is another placement group, and no half-lost one is reused.
    """

    pool: str
    uid: str
    index: int
    node_id: str

    def __str__(self) -> str:
        return f"{self.pool}/{self.uid}/{self.index}/{self.node_id}"

    @classmethod
    def parse(cls, text: str) -> PlacementName | None:
        """Parse a placement group's name; return ``None`` if it is not one of ours."""
        match = _PLACEMENT.fullmatch(text)
        if match is None:
            return None
        return cls(match["pool"], match["uid"], int(match["index"]), match["node_id"])
