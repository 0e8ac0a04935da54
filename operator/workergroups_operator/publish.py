"""Step eight, the only writer of status: write it only when it changed, and then an event when `Ready` turned."""

import logging
import os
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

from kubernetes.aio.dynamic.exceptions import ConflictError, DynamicApiError, NotFoundError

from workergroups_api.kube import Kube, api_error_message, is_refusal
from workergroups_api.launch import digest
from workergroups_api.manifest import Manifest
from workergroups_api.vocabulary import EventReason
from workergroups_operator.membership import ClusterKey
from workergroups_operator.status.update import StatusUpdate
from workergroups_operator.writes import Writes

LOGGER = logging.getLogger(__name__)
CONTROLLER = "workergroups.dev/operator"
# How many statuses of a namespace are written at once.
NAMESPACE_WRITES = 8


class Publisher:
    """Writes statuses. A write for which the API server takes long holds no turn, and so no other object's status.

    The API server may need seconds for one write: a webhook is slow, or an object has a hundred thousand values.
    Each object has one write at a time, so that no older one can come last.
    """

    def __init__(self, client: Kube, enqueue: Callable[[ClusterKey], None]) -> None:
        self._client = client
        self.writes: Writes[str | None] = Writes(enqueue, at_once=NAMESPACE_WRITES)

    async def publish(self, key: ClusterKey, updates: Sequence[StatusUpdate]) -> str | None:
        """Apply the operator's part of each object's status. Returns what could not be written, to be tried again.

        What cannot be written of one object never keeps the others' status back.
        """
        changed = [update for update in updates if update.after != update.before]
        writes = {update.metadata["uid"]: partial(_publish, self._client, update) for update in changed}
        answers = await self.writes.run(key, writes)
        return "; ".join(filter(None, answers.values())) or None


async def _publish(client: Kube, update: StatusUpdate) -> str | None:
    try:
        await client.apply(_identity(update) | {"status": update.after.to_json()}, subresource="status")
    except (NotFoundError, ConflictError):
        return None  # Deleted meanwhile, and perhaps made again.
    except Exception as error:  # Not only of the API server: no update may keep the others back.
        if not update.is_readable and isinstance(error, DynamicApiError):
            # All that can be done: nobody can write the status of such an object.
            await _tell(client, update, event(update, datetime.now(UTC)))
            return None
        if is_refusal(error):
            await _tell(client, update, refusal_event(update, error, datetime.now(UTC)))
        return f"status of {update.kind.kind} {update.metadata['name']}: {api_error_message(error)[:500]}"
    if update.ready_before is None or update.ready_before.status != update.ready.status:
        await _tell(client, update, event(update, datetime.now(UTC)))
    return None


def _identity(update: StatusUpdate) -> Manifest:
    metadata = update.metadata
    return {
        "apiVersion": update.kind.api_version,
        "kind": update.kind.kind,
        # With the UID the write fails if the name has gone to another object meanwhile.
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"]},
    }


def event(update: StatusUpdate, now: datetime) -> Manifest:
    """The event for `kubectl describe`: `Ready` turned true, or it turned away from it."""
    metadata, ready = update.metadata, update.ready
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata['name']}.{_suffix(update)}", "namespace": metadata["namespace"]},
        "eventTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "type": "Normal" if ready.status == "True" else "Warning",
        "reason": EventReason.READY if ready.status == "True" else EventReason.NOT_READY,
        "note": f"{ready.reason}: {ready.message}"[:1024],
        "action": "Reconcile",
        "reportingController": CONTROLLER,
        "reportingInstance": os.environ.get("HOSTNAME", "operator"),
        "regarding": {
            "apiVersion": update.kind.api_version,
            "kind": update.kind.kind,
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
        },
    }


def refusal_event(update: StatusUpdate, error: Exception, now: datetime) -> Manifest:
    """Return the event of an object whose status is refused: it says what the status would, once for each `Ready`."""
    told, ready = event(update, now), update.ready
    name = f"{update.metadata['name']}.{digest([update.metadata['uid'], ready.status, ready.reason])}"
    would_be = f"Ready={ready.status}, {ready.reason}: {ready.message}"
    return told | {
        "metadata": {**told["metadata"], "name": name},
        "type": "Warning",
        "reason": EventReason.STATUS_REFUSED,
        "note": f"the status may be out of date, for it cannot be written: {api_error_message(error)[:400]}; it would "
        f"be {would_be}"[:1024],
    }


def _suffix(update: StatusUpdate) -> str:
    """New for each event; of an object without status it is the same each time, so that the event is there once."""
    if update.is_readable:
        return uuid.uuid4().hex[:16]
    return digest([update.metadata["uid"], update.metadata.get("generation"), update.ready.message])


async def _tell(client: Kube, update: StatusUpdate, told: Manifest) -> None:
    try:
        await client.create(told)
    except ConflictError:
        return  # It has been told before.
    except Exception as error:
        LOGGER.warning("no event for %s: %s", update.metadata["name"], api_error_message(error))
