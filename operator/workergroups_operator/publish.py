"""Step eight, the only writer of status: write a status if it changed, and an event if `Ready` or its cause changed.

It also deletes the finished groups whose time is over, after their statuses have told that they are finished.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from kubernetes.aio.dynamic.exceptions import ConflictError, DynamicApiError, NotFoundError

from workergroups_api.conditions import Explanation
from workergroups_api.launch import digest
from workergroups_api.manifest import WORKER_GROUP, Manifest
from workergroups_api.report import AGENT_FIELDS
from workergroups_api.vocabulary import EventReason, RankEnd, Reason
from workergroups_api.worker_group import WorkerGroup
from workergroups_kube import Kube, ReplacedError, api_error_message, invalid_fields, is_refusal
from workergroups_operator.events import Events, object_event
from workergroups_operator.membership import ClusterKey
from workergroups_operator.metrics import Metrics
from workergroups_operator.status.conclusion import StatusUpdate
from workergroups_operator.timings import Timings
from workergroups_operator.writes import Writes

LOGGER = logging.getLogger(__name__)
# How many statuses of a namespace the operator writes at once.
NAMESPACE_WRITES = 8


@dataclass(frozen=True)
class _Tried:
    """A status that the API server has taken or refused, and that is not what the object has."""

    # The version of the object, and what was written: of a refused status, only what `Ready` would be.
    what: tuple[Any, ...]
    # Why it was refused; None if an event has told it, or if it was taken.
    said: str | None = None
    refusals: int = 0
    # When to try again. What was taken had no effect, since others own the rest, and would have none again.
    due: float = float("inf")


class Publisher:
    """Writes statuses. A slow write occupies no reconcile, and so delays no other object's status.

    The API server may need seconds for one write: a webhook is slow, or an object has a hundred thousand values.
    Each object has one write at a time, so that an older status cannot overwrite a newer one.
    """

    def __init__(
        self, client: Kube, events: Events, enqueue: Callable[[ClusterKey], None], timings: Timings, metrics: Metrics
    ) -> None:
        self._client = client
        self._events = events
        self._metrics = metrics
        self._retry = timings.urgent_retry
        # By cluster, and by the object's UID.
        self._tried: dict[ClusterKey, dict[str, _Tried]] = {}
        self.writes: Writes[str | None] = Writes(enqueue, timings, at_once=NAMESPACE_WRITES)

    async def publish(self, key: ClusterKey, updates: Sequence[StatusUpdate], *, are_all: bool = True) -> str | None:
        """Apply the operator's part of each object's status. Return what could not be written, and must be retried.

        A status that cannot be written holds no other status up. One that was refused waits for a while, and then comes
        after all others: each try may take the API server long, and leads to another reconcile. One that was taken,
        although the object has another, is not written again until one of them changes. Objects that have no status yet
        come first, and then those whose `Ready` is untrue: where writes are slow, others might change as fast as they
        are written.
        """
        self._metrics.note(key, updates, are_all=are_all)
        changed = {str(update.metadata["uid"]): update for update in updates if update.after != update.before}
        before, now = self._tried.pop(key, {}), asyncio.get_running_loop().time()
        tried = {uid: before[uid] for uid in changed if uid in before and before[uid].what in _whats(changed[uid])}
        self._tried[key] = tried
        waiting = {uid: last.said for uid, last in tried.items() if last.due > now}
        due = sorted(changed, key=lambda uid: (tried[uid].due if uid in tried else 0.0, _urgency(changed[uid])))
        writes = {uid: partial(self._publish, key, changed[uid]) for uid in due if uid not in waiting}
        answers = await self.writes.run(key, writes)
        return "; ".join(filter(None, [*answers.values(), *waiting.values()])) or None

    def forget(self, key: ClusterKey) -> None:
        """Forget a cluster."""
        self._metrics.forget(key)
        self._tried.pop(key, None)

    async def _publish(self, key: ClusterKey, update: StatusUpdate) -> str | None:
        said, is_refused = await _write(self._client, self._events, update)
        self._metrics.written(update, "refused" if is_refused else "failed" if said else "taken")
        uid, tried = str(update.metadata["uid"]), self._tried.get(key, {})
        taken, refused = _whats(update)
        if is_refused:
            refusals = tried[uid].refusals + 1 if uid in tried else 1
            due = asyncio.get_running_loop().time() + self._retry.after(refusals)
            tried[uid] = _Tried(refused, said, refusals, due)
        elif said is None:
            tried[uid] = _Tried(taken)
        return said

    async def delete(self, key: ClusterKey, groups: Sequence[WorkerGroup]) -> str | None:
        """Delete groups that have not changed since they were read. Return what could not be deleted."""
        deletions = {f"delete {group.uid}": partial(_delete, self._client, group) for group in groups}
        answers = await self.writes.run(key, deletions)
        return "; ".join(filter(None, answers.values())) or None


async def _delete(client: Kube, group: WorkerGroup) -> str | None:
    try:
        await client.delete(WORKER_GROUP.manifest(group.metadata), only_unchanged=True)
    except ConflictError:
        return None  # The next reconcile decides again.
    except Exception as error:
        return f"{WORKER_GROUP.kind} {group.name} has finished and cannot be deleted: {api_error_message(error)[:500]}"
    LOGGER.info(
        "%s/%s has finished, and is deleted as its spec.ttlSecondsAfterFinished says", group.namespace, group.name
    )
    return None


def _urgency(update: StatusUpdate) -> int:
    """Return in which order statuses are written; the lowest comes first."""
    before = update.ready_before
    return 0 if before is None else 1 if before.status != update.ready.status else 2


def _whats(update: StatusUpdate) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return what is remembered if the API server takes the status, and if it refuses it."""
    version = update.metadata.get("resourceVersion")
    return (version, digest(update.after.to_json())), (version, update.ready.status, update.ready.reason)


async def _write(client: Kube, events: Events, update: StatusUpdate) -> tuple[str | None, bool]:
    """Return what could not be written, and whether it was refused, or the object is gone."""
    try:
        await _apply(client, update)
    except (NotFoundError, ConflictError, ReplacedError):
        return None, True  # It was deleted meanwhile, and perhaps recreated; or others change it all the time.
    except Exception as error:  # Not only API errors: no update may hold the others up.
        if not update.is_readable and isinstance(error, DynamicApiError):
            # The status of such an object cannot be written, so an event is all that is possible.
            events.tell(event(update, datetime.now(UTC)))
            return None, is_refusal(error)
        if is_refusal(error):
            events.tell(refusal_event(update, error, datetime.now(UTC)))
        said = f"status of {update.kind.kind} {update.metadata['name']}: {api_error_message(error)[:500]}"
        return said, is_refusal(error)
    if is_news(update):
        events.tell(event(update, datetime.now(UTC)))
    for news in update.news:
        events.tell(news_event(update, news, datetime.now(UTC)))
    return None, False


async def _apply(client: Kube, update: StatusUpdate) -> None:
    """Apply the status; if others own parts of it with which it is invalid, remove these first."""
    identity, status = _identity(update), update.after.to_json()
    try:
        return await client.apply_status(identity | {"status": status})
    except DynamicApiError as error:
        if not update.is_readable or not any(field.startswith("status") for field in invalid_fields(error)):
            raise
    fields = {field.alias or name for name, field in type(update.after).model_fields.items()}
    nothing = dict.fromkeys(sorted(fields - {AGENT_FIELDS[update.kind]}))
    # Whether ours is valid without theirs. It is not written like this, since a merge never gives a field up again.
    await client.merge_status(identity | {"status": nothing | status}, dry_run=True)
    await client.merge_status(identity | {"status": nothing})
    await client.apply_status(identity | {"status": status})


def is_news(update: StatusUpdate) -> bool:
    """Return whether `Ready` has another status than before, or its cause is known only now, or the run is complete."""
    before, ready = update.ready_before, update.ready
    if before is None or before.status != ready.status:
        return True
    return before.reason != ready.reason and (update.is_cause or ready.reason == Reason.COMPLETE)


def _identity(update: StatusUpdate) -> Manifest:
    wanted = ("name", "namespace", "uid", "resourceVersion")
    return update.kind.manifest({key: update.metadata[key] for key in wanted if key in update.metadata})


def event(update: StatusUpdate, now: datetime) -> Manifest:
    """Return the event for `kubectl describe`: `Ready` became True, or ceased to be, or the run of a group ended."""
    metadata, ready = update.metadata, update.ready
    is_ready = EventReason.COMPLETE if ready.reason == Reason.COMPLETE else EventReason.READY
    not_ready = EventReason.HUNG if ready.reason == RankEnd.HUNG else EventReason.NOT_READY
    reason = is_ready if ready.status == "True" else not_ready
    why = Explanation(reason, f"{ready.reason}: {ready.message}")
    type_ = "Normal" if ready.status == "True" else "Warning"
    return object_event(update.kind, metadata, type_, why, now, _suffix(update))


def news_event(update: StatusUpdate, news: Explanation, now: datetime) -> Manifest:
    """Return the event for something else that has happened to the object."""
    type_ = "Normal" if news.reason == EventReason.NEW_INCARNATION else "Warning"
    return event(update, now) | {"type": type_, "reason": news.reason, "note": news.message[:1024]}


def refusal_event(update: StatusUpdate, error: Exception, now: datetime) -> Manifest:
    """Return the event for a status that is refused: what the status would be, once for each value of `Ready`."""
    told, ready = event(update, now), update.ready
    name = f"{update.metadata['name']}.{digest([update.metadata['uid'], ready.status, ready.reason])}"
    would_be = f"Ready={ready.status}, {ready.reason}: {ready.message}"
    return told | {
        "metadata": {**told["metadata"], "name": name},
        "type": "Warning",
        "reason": EventReason.STATUS_REFUSED,
        "note": f"the status may be out of date, since it cannot be written: {api_error_message(error)[:400]}; it "
        f"would be {would_be}"[:1024],
    }


def _suffix(update: StatusUpdate) -> str | None:
    """Return None for a new suffix of each event; for an unreadable object a constant one, so that it exists once."""
    if update.is_readable:
        return None
    return digest([update.metadata["uid"], update.metadata.get("generation"), update.ready.message])
