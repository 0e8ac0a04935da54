"""What is reserved for a ResourcePool: how many placement groups hold its bundles.

The agent makes them, and announces each pool in Ray's control service (the GCS), so that drivers find them.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import announcements

_KV_NAMESPACE = "workergroups-pools"


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
