"""The pauses of all processes, as they announce them in Ray's control service (the GCS)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from workergroups.announcements import store as announcements
from workergroups.ray_private import key_value_store

from .pauses import Pause, parsed

KV_NAMESPACE = "workergroups-pauses"
"""The namespace of the key-value store. The keys are the ids of actors, of the workers of plain tasks, and of drivers'
jobs.
"""
MAX_BYTES = 16 * 1024
"""The largest record."""


def announce(process_id: str, pause: Pause) -> None:
    """Announce where the process with this id is paused."""
    announcements.announce(KV_NAMESPACE, process_id, dataclasses.asdict(pause))


def withdraw(process_id: str) -> None:
    """Remove the announcement of a process that continues."""
    key_value_store.delete(KV_NAMESPACE, process_id)


def withdraw_all(actor_ids: Iterable[str]) -> None:
    """Remove the announcements of dead ranks."""
    for actor_id in _announced_ids().intersection(actor_ids):
        withdraw(actor_id)


def announced(actor_ids: Iterable[str] | None = None) -> dict[str, Pause]:
    """Return the pauses of these ranks, or of all, by actor id. Those of dead ranks are included until withdrawn."""
    ids = _announced_ids() if actor_ids is None else _announced_ids().intersection(actor_ids)
    found = {actor_id: parsed(announcements.current(KV_NAMESPACE, actor_id)) for actor_id in ids}
    return {actor_id: pause for actor_id, pause in found.items() if pause is not None}


def _announced_ids() -> set[str]:
    return set(key_value_store.keys(KV_NAMESPACE))


def read(data: bytes) -> Pause | None:
    """Return the pause in a record of the key-value store; ``None`` if no rank of ours can have written it."""
    return parsed(announcements.read(data)) if len(data) <= MAX_BYTES else None
