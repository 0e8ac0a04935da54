"""How far each rank is with the method that its WorkerGroup runs, as it records in Ray's control service (the GCS).

The rank itself records it, under its actor id, so it does not depend on who called the method. A rank runs the method
once, however often it is asked to.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from workergroups.announcements import store as announcements
from workergroups.ray_private import key_value_store
from workergroups_api.vocabulary import Word

KV_NAMESPACE = "workergroups-runs"
"""The namespace of the key-value store; the keys are actor ids."""
MAX_BYTES = 16 * 1024
"""The largest record."""
MAX_MESSAGE = 1024
"""Characters of an exception."""


class RunStep(Word):
    """How far a rank is."""

    BEGUN = "Begun"
    RETURNED = "Returned"
    RAISED = "Raised"


@dataclass(frozen=True)
class RunRecord:
    """What a rank records."""

    step: RunStep
    message: str = ""
    """The exception that the method raised."""

    @property
    def has_ended(self) -> bool:
        """Whether the method has returned or raised an exception."""
        return self.step is not RunStep.BEGUN


def begin(actor_id: str) -> bool:
    """Record that a rank begins; return whether it has not begun before."""
    return key_value_store.put_if_absent(KV_NAMESPACE, actor_id, _dumped(RunRecord(RunStep.BEGUN)))


def end(actor_id: str, error: str | None) -> None:
    """Record that the method has returned on a rank, or which exception it has raised."""
    record = RunRecord(RunStep.RETURNED) if error is None else RunRecord(RunStep.RAISED, error[:MAX_MESSAGE])
    key_value_store.put(KV_NAMESPACE, actor_id, _dumped(record))


def forget(actor_id: str) -> None:
    """Remove what a rank has recorded."""
    key_value_store.delete(KV_NAMESPACE, actor_id)


def read(data: bytes) -> RunRecord | None:
    """Return a record; ``None`` if no rank of ours can have written it."""
    match announcements.read(data) if len(data) <= MAX_BYTES else None:
        case {"step": str(step), "message": str(message)} if step in list(RunStep):
            return RunRecord(RunStep(step), message[:MAX_MESSAGE])
    return None


def _dumped(record: RunRecord) -> bytes:
    return json.dumps(asdict(record)).encode("ascii")
