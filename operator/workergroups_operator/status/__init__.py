"""Step six: what is true of each object. Pure: from spec, observed, decisions, failures, previous status and time."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from workergroups_api.conditions import Condition, Finding, find, merge
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP, Kind, Manifest
from workergroups_api.model import ApiModel
from workergroups_api.resource_pool import ResourcePool, ResourcePoolStatus
from workergroups_api.retries import Retries
from workergroups_api.vocabulary import ConditionType
from workergroups_api.worker_group import WorkerGroup, WorkerGroupStatus
from workergroups_operator.decisions import Decisions
from workergroups_operator.failures import Failures
from workergroups_operator.observed import Observed, Unreadable
from workergroups_operator.status import group as groups
from workergroups_operator.status import pool as pools
from workergroups_operator.status.conclusion import Situation

# What is in the way may have no label of ours, so no event tells that it is gone: the operator looks again this soon,
# and less often the longer it lasts.
OBSTACLE_SECONDS = 2.0
OBSTACLE_PART = 0.25
LAST_OBSTACLE_SECONDS = 60.0


@dataclass(frozen=True)
class StatusUpdate:
    """An object, and the operator's part of its status as it was and as it is to be."""

    kind: Kind
    metadata: Manifest
    before: ApiModel | None
    after: ApiModel
    ready_before: Condition | None
    ready: Condition
    # Otherwise its stored form may be one that its schema no longer allows, and then no status can be written.
    is_readable: bool = True


@dataclass(frozen=True)
class Statuses:
    """What is true of all objects of a cluster, and when to look again if nothing happens."""

    updates: tuple[StatusUpdate, ...]
    # None when there are no objects, infinite when events tell whatever may change.
    requeue_after: float | None


def status(observed: Observed, decisions: Decisions, failures: Failures, now: datetime) -> Statuses:
    """The status of all pools and groups of the cluster."""
    situation = Situation(observed, decisions, failures, now)
    waits = [observed.agent.look_again_seconds]
    waits += [_until(incarnation.retries.next, now) for incarnation in decisions.incarnations.values()]
    waits.append(_until(decisions.restarts.retries.next, now))
    updates = [_unreadable(odd, now) for odd in observed.unreadable]
    weakest: dict[str, Finding] = {}
    for pool in observed.pools:
        concluded = pools.pool_conditions(pool, situation)
        weakest[pool.name] = concluded.weakest
        waits.append(concluded.requeue_after)
        after = ResourcePoolStatus(
            conditions=concluded.conditions,
            observed_generation=pool.generation,
            deadline=concluded.deadline,
            cluster_name=pool.cluster,
            nodes=pool.spec.nodes,
            ready_nodes=_known(pools.ready_nodes(pool, situation), pool, situation),
            ray_version=found.ray if (found := pools.node_versions(pool, situation)) else None,
        )
        before = pool.status.model_copy(update={"reservation": None})
        updates.append(_update(RESOURCE_POOL, pool, before, after, concluded.ready))
    for group in observed.groups:
        concluded = groups.group_conditions(group, situation, weakest)
        waits.append(concluded.requeue_after)
        incarnation = decisions.incarnations.get(group.name)
        last = group.status
        after_ = WorkerGroupStatus(
            conditions=concluded.conditions,
            observed_generation=group.generation,
            deadline=concluded.deadline,
            world_size=groups.world_size(group, situation),
            ready_ranks=_known(groups.believed_report(group, situation).ready_count, group, situation),
            incarnation=incarnation.number if incarnation else last.incarnation,
            revision=incarnation.revision if incarnation else last.revision,
            session=incarnation.session if incarnation else last.session,
            retries=_retries(incarnation.retries) if incarnation else last.retries,
        )
        before_ = last.model_copy(update={"ranks": None})
        updates.append(_update(WORKER_GROUP, group, before_, after_, concluded.ready))
    if decisions.obstacle:
        waits += [_look_again(update.ready, now) for update in updates]
    return Statuses(tuple(updates), min(waits) if updates else None)


def _known(count: int, subject: ResourcePool | WorkerGroup, situation: Situation) -> int | None:
    return None if pools.unvouched(subject, situation) else count


def _look_again(ready: Condition, now: datetime) -> float:
    """When to look again at what is in an object's way."""
    lasted = (now - ready.last_transition_time).total_seconds()
    return min(LAST_OBSTACLE_SECONDS, max(OBSTACLE_SECONDS, OBSTACLE_PART * lasted))


def _retries(retries: Retries) -> Retries | None:
    return retries if retries.failures else None


def _until(moment: datetime | None, now: datetime) -> float:
    return float("inf") if moment is None else max(0.0, (moment - now).total_seconds())


def _update(
    kind: Kind, subject: ResourcePool | WorkerGroup, before: ApiModel, after: ApiModel, ready: Condition
) -> StatusUpdate:
    return StatusUpdate(
        kind, subject.metadata, before, after, find(subject.status.conditions, ConditionType.READY), ready
    )


def _unreadable(odd: Unreadable, now: datetime) -> StatusUpdate:
    """Of an object that cannot be read, only that can be said."""
    previous = _conditions(odd.body.get("status"))
    metadata = odd.body["metadata"]
    why = Finding(
        type=ConditionType.READY, status="False", reason=odd.explanation.reason, message=odd.explanation.message
    )
    (ready,) = merge(previous, [why], int(metadata.get("generation", 0)), now)
    model = ResourcePoolStatus if odd.kind is RESOURCE_POOL else WorkerGroupStatus
    after = model(conditions=(ready,), observed_generation=metadata.get("generation"))
    before_ready = find(previous, ConditionType.READY)
    before = model(conditions=previous, observed_generation=(odd.body.get("status") or {}).get("observedGeneration"))
    return StatusUpdate(odd.kind, metadata, before, after, before_ready, ready, is_readable=False)


def _conditions(raw: Any) -> tuple[Condition, ...]:
    """The conditions of a status, as far as they can be read."""
    found = []
    for body in (raw or {}).get("conditions") or () if isinstance(raw, dict) else ():
        try:
            found.append(Condition.model_validate(body))
        except ValidationError:
            continue
    return tuple(found)
