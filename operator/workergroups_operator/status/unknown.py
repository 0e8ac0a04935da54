"""The statuses of objects of which nothing can be concluded.

An object that the operator cannot read has failed, and nothing else is known of it. Of a cluster whose reconcile failed
as a whole, the state is unknown.
"""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from workergroups_api.conditions import Condition, Explanation, find, merge
from workergroups_api.group_status import WorkerGroupStatus
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP, Kind, Manifest
from workergroups_api.pool_status import ResourcePoolStatus
from workergroups_api.report import AGENT_FIELDS
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import ConditionType
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.observed import REMEMBERED, Observed, UnreadableObject
from workergroups_operator.status.conclusion import StatusUpdate, finding
from workergroups_operator.status.progressing import failed, progressing


def unreadable(odd: UnreadableObject, now: datetime) -> StatusUpdate:
    """Return the status that explains why the object cannot be read."""
    raw = odd.body.get("status")
    previous, metadata = _conditions(raw), odd.body["metadata"]
    ready = finding(ConditionType.READY, "False", odd.explanation, final=True)
    findings = (ready, progressing(ready, None, now), *failed(ready))
    conditions = merge(previous, findings, int(metadata.get("generation", 0)), now)
    model = ResourcePoolStatus if odd.kind is RESOURCE_POOL else WorkerGroupStatus
    observed_generation = (raw or {}).get("observedGeneration")
    before = model(conditions=previous, observed_generation=observed_generation, **_remembered(model, raw or {}))
    after = before.model_copy(update={"conditions": conditions, "observed_generation": metadata.get("generation")})
    ready_before = find(previous, ConditionType.READY)
    return StatusUpdate(odd.kind, metadata, before, after, ready_before, conditions[0], is_readable=False)


def _remembered(model: type[ResourcePoolStatus | WorkerGroupStatus], raw: Manifest) -> dict[str, Any]:
    """Return what the operator must not forget, such as that it has suspended a pool, as far as it can be read."""
    found: dict[str, Any] = {}
    for name in model.model_fields.keys() & raw.keys() & set(REMEMBERED):
        with suppress(ValidationError):
            found[name] = getattr(model.model_validate({name: raw[name]}), name)
    return found


def _conditions(raw: Any) -> tuple[Condition, ...]:
    """Return the conditions of a status, as far as they can be read."""
    found = []
    for body in (raw or {}).get("conditions") or () if isinstance(raw, dict) else ():
        try:
            found.append(Condition.model_validate(body))
        except ValidationError:
            continue
    return tuple(found)


def unknown(observed: Observed, why: Explanation, now: datetime) -> Iterator[StatusUpdate]:
    """Set each condition of each object to Unknown, and keep the counters of the operator.

    What an object that cannot be read reports is true whatever else exists.
    """
    yield from (unreadable(odd, now) for odd in observed.unreadable)
    yield from (_unknown(RESOURCE_POOL, pool, "ready_nodes", why, now) for pool in observed.pools)
    yield from (_unknown(WORKER_GROUP, group, "ready_ranks", why, now) for group in observed.groups)


def _unknown(
    kind: Kind, subject: ResourcePool | WorkerGroup, ready_count: str, why: Explanation, now: datetime
) -> StatusUpdate:
    previous = subject.status.conditions
    always = (ConditionType.READY, ConditionType.PROGRESSING, ConditionType.FAILED, ConditionType.STALLED)
    types = dict.fromkeys([*(condition.type for condition in previous), *always])
    conditions = merge(previous, [finding(type_, "Unknown", why) for type_ in types], subject.generation, now)
    ready = next(condition for condition in conditions if condition.type == ConditionType.READY)
    before = subject.status.model_copy(update={AGENT_FIELDS[kind]: None})
    after = before.model_copy(update={"conditions": conditions, "deadline": None, ready_count: None})
    return StatusUpdate(kind, subject.metadata, before, after, find(previous, ConditionType.READY), ready)
