"""What is reserved for a ResourcePool: how many placement groups hold its bundles.

The agent creates the placement groups, and announces each pool in Ray's control service (the GCS) to drivers.
"""

from __future__ import annotations

from dataclasses import dataclass

from workergroups.announcements import store as announcements
from workergroups.ray_private import key_value_store

_KV_NAMESPACE = "workergroups-pools"


@dataclass(frozen=True)
class ReservedPool:
    """What is reserved for a pool."""

    uid: str
    """The ResourcePool object's UID, which changes if the pool is deleted and recreated."""
    nodes: int
    """How many nodes the pool should have, with a placement group each."""


def announce(pool: str, uid: str, nodes: int) -> None:
    """Announce what is reserved for the pool; write nothing if it is announced already."""
    announcements.announce(_KV_NAMESPACE, pool, {"uid": uid, "nodes": nodes})


def current(pool: str) -> ReservedPool | None:
    """Return what is reserved for the pool; ``None`` if no readable reservation was announced."""
    match announcements.current(_KV_NAMESPACE, pool):
        case {"uid": str(uid), "nodes": nodes} if announcements.is_count(nodes):
            return ReservedPool(uid, nodes)
    return None


def pools() -> list[str]:
    """Return the names of all pools about which something is announced."""
    return sorted(key_value_store.keys(_KV_NAMESPACE))


def forget(pool: str) -> None:
    """Remove the announcement about a pool that is gone."""
    key_value_store.delete(_KV_NAMESPACE, pool)
