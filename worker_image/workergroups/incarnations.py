"""Which incarnation of each WorkerGroup is current, as the agent announces it in Ray's control service (the GCS).

The agent announces an incarnation before it ends the ranks of an older one. So whoever sees those ranks end can tell
that they were replaced, and from which incarnation on there are ranks again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from ray.experimental import internal_kv

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
    announced = Incarnation(uid, incarnation)
    if current(group) == announced:
        return
    record = json.dumps({"uid": uid, "incarnation": incarnation}).encode()
    internal_kv._internal_kv_put(group, record, overwrite=True, namespace=_KV_NAMESPACE)


def current(group: str) -> Incarnation | None:
    """The group's current incarnation; ``None`` if none was announced, or what is there cannot be read."""
    data = internal_kv._internal_kv_get(group, namespace=_KV_NAMESPACE)
    return None if data is None else _parse(data)


def forget(group: str) -> None:
    """Remove what was announced of a group that is gone."""
    internal_kv._internal_kv_del(group, namespace=_KV_NAMESPACE)


def _parse(data: bytes) -> Incarnation | None:
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):  # no JSON, or no text at all
        return None
    if not isinstance(record, dict):
        return None
    uid, number = record.get("uid"), record.get("incarnation")
    if not isinstance(uid, str) or type(number) is not int or number < 1:
        return None
    return Incarnation(uid, number)
