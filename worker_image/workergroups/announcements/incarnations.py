"""Which incarnation of each WorkerGroup is current, as the agent announces it in Ray's control service (the GCS).

The agent announces an incarnation before it ends the ranks of an older one. So a driver that sees those ranks end can
tell that they were replaced, and by which incarnation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workergroups.announcements import store as announcements
from workergroups.ray_private import key_value_store

_KV_NAMESPACE = "workergroups-incarnations"
# Users can write to the GCS.
_MAX_TEXT = 2048


@dataclass(frozen=True)
class Incarnation:
    """One creation of a group's ranks."""

    uid: str
    """The WorkerGroup object's UID, which changes if the group is deleted and recreated."""
    incarnation: int
    """How often that object's ranks have been created, from 1."""
    is_final: bool = field(default=False, compare=False)
    """Whether its ranks have failed, and the operator does not recreate them."""
    births: Mapping[int, int] = field(default_factory=dict, compare=False)
    """The births of ranks that are recreated alone: what has an earlier birth is about to end."""
    cause: str = field(default="", compare=False)
    """Which rank failed and how, if the latest ranks were created after a failure; else empty."""


def announce(
    group: str,
    uid: str,
    incarnation: int,
    is_final: bool = False,
    births: Mapping[int, int] | None = None,
    cause: str | None = None,
) -> None:
    """Announce that this incarnation of the group is current; write nothing if it is announced already."""
    record: dict[str, Any] = {"uid": uid, "incarnation": incarnation}
    record |= {"final": True} if is_final else {}
    record |= {"cause": cause} if cause else {}
    announcements.announce(_KV_NAMESPACE, group, record | ({"births": dict(births)} if births else {}))


def current(group: str) -> Incarnation | None:
    """Return the group's current incarnation; ``None`` if no readable one was announced."""
    match announcements.current(_KV_NAMESPACE, group):
        case {"uid": str(uid), "incarnation": number, **more} if announcements.is_count(number):
            return Incarnation(
                uid, number, more.get("final") is True, _births(more.get("births")), _text(more.get("cause"))
            )
    return None


def _births(record: Any) -> dict[int, int]:
    known = record.items() if isinstance(record, dict) else ()
    return {int(rank): birth for rank, birth in known if rank.isdecimal() and announcements.is_count(birth)}


def _text(record: Any) -> str:
    return record[:_MAX_TEXT] if isinstance(record, str) else ""


def forget(group: str) -> None:
    """Remove the announcement about a group that is gone."""
    key_value_store.delete(_KV_NAMESPACE, group)
