"""Which placement groups hold the bundles of a ResourcePool: how they are named, and how many there are to be.

The agent names them, and announces each pool in Ray's control service (the GCS), so that drivers find them.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import announcements

_KV_NAMESPACE = "workergroups-pools"


@dataclass(frozen=True)
class PlacementName:
    """The placement group of one node of a pool, on one Ray node.

    The Ray node is part of the name: on another one it is another placement group, and no half-lost one lives on.
    """

    pool: str
    uid: str
    index: int
    node_id: str

    def __str__(self) -> str:
        return f"{self.pool}/{self.uid}/{self.index}/{self.node_id}"

    @classmethod
    def parse(cls, text: str) -> PlacementName | None:
        """The name, or ``None`` if it is not one of ours."""
        parts = text.split("/")
        if len(parts) != 4 or not parts[2].isdecimal() or not parts[2].isascii():
            return None
        return cls(parts[0], parts[1], int(parts[2]), parts[3])


@dataclass(frozen=True)
class Reservation:
    """What is reserved for a pool."""

    uid: str
    """The ResourcePool object's UID: a pool that was deleted and made again has another."""
    nodes: int
    """How many nodes it is to have, with a placement group each."""


def announce(pool: str, uid: str, nodes: int) -> None:
    """Say what is reserved for the pool. Writes nothing if that is known already."""
    announcements.announce(_KV_NAMESPACE, pool, {"uid": uid, "nodes": nodes})


def current(pool: str) -> Reservation | None:
    """What is reserved for the pool; ``None`` if nothing was announced, or what is there cannot be read."""
    match announcements.current(_KV_NAMESPACE, pool):
        case {"uid": str(uid), "nodes": nodes} if announcements.is_count(nodes):
            return Reservation(uid, nodes)
    return None


def forget(pool: str) -> None:
    """Remove what was announced of a pool that is gone."""
    announcements.forget(_KV_NAMESPACE, pool)
