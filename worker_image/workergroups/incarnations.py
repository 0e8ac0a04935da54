"""Which incarnation of each WorkerGroup is current, as the agent announces it in Ray's control service (the GCS).

The agent announces an incarnation before it ends the ranks of an older one. So whoever sees those ranks end can tell
that they were replaced, and from which incarnation on there are ranks again.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import announcements

_KV_NAMESPACE = "workergroups-incarnations"


@dataclass(frozen=True)
class Incarnation:
    """One making of a group's ranks."""

    uid: str
    """The WorkerGroup object's UID: a group that was deleted and made again has another."""
    incarnation: int
    """How often that object's ranks were started, from 1."""


def announce(group: str, uid: str, incarnation: int) -> None:
    """Say that this incarnation of the group is the current one. Writes nothing if that is known already."""
    announcements.announce(_KV_NAMESPACE, group, {"uid": uid, "incarnation": incarnation})


def current(group: str) -> Incarnation | None:
    """The group's current incarnation; ``None`` if none was announced, or what is there cannot be read."""
    match announcements.current(_KV_NAMESPACE, group):
        case {"uid": str(uid), "incarnation": number} if announcements.is_count(number):
            return Incarnation(uid, number)
    return None


def forget(group: str) -> None:
    """Remove what was announced of a group that is gone."""
    announcements.forget(_KV_NAMESPACE, group)
