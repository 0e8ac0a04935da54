"""Which incarnation of each WorkerGroup is current, as the agent announces it in Ray's control service (the GCS).

The agent announces an incarnation before it ends the ranks of an older one. So a driver that sees those ranks end can
tell that they were replaced, and by which incarnation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from . import announcements

_KV_NAMESPACE = "workergroups-incarnations"


@dataclass(frozen=True)
class Incarnation:
    """One creation of a group's ranks."""

    uid: str
    """The WorkerGroup object's UID, which changes if the group is deleted and recreated."""
    incarnation: int
    """How often that object's ranks have been created, from 1."""
    is_final: bool = field(default=False, compare=False)
    """Whether its ranks have failed, and the operator does not recreate them."""


def announce(group: str, uid: str, incarnation: int, is_final: bool = False) -> None:
    """Announce that this incarnation of the group is current; write nothing if it is announced already."""
    record: dict[str, str | int] = {"uid": uid, "incarnation": incarnation}
    announcements.announce(_KV_NAMESPACE, group, record | ({"final": True} if is_final else {}))


def current(group: str) -> Incarnation | None:
    """Return the group's current incarnation; ``None`` if no readable one was announced."""
    match announcements.current(_KV_NAMESPACE, group):
        case {"uid": str(uid), "incarnation": number, **more} if announcements.is_count(number):
            return Incarnation(uid, number, is_final=more.get("final") is True)
    return None


def forget(group: str) -> None:
    """Remove the announcement about a group that is gone."""
    announcements.forget(_KV_NAMESPACE, group)
