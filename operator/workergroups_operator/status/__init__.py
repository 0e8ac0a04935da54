"""Step four: what is true of each object. Pure: from spec, observed, failure, previous status and the time."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from workergroups_api.conditions import Condition, Finding, find
from workergroups_api.kube import RESOURCE_POOL, WORKER_GROUP, Kind
from workergroups_api.model import ApiModel
from workergroups_api.resource_pool import ResourcePool, ResourcePoolStatus
from workergroups_api.worker_group import WorkerGroup, WorkerGroupStatus
from workergroups_operator.apply import ApplyFailure
from workergroups_operator.observe import Observed
from workergroups_operator.policy.agent_liveness import GRACE, AgentLiveness
from workergroups_operator.policy.seating import Seating
from workergroups_operator.policy.sharing import Sharing
from workergroups_operator.status.group import group_conditions, world_size
from workergroups_operator.status.pool import pool_conditions
from workergroups_operator.status.situation import Situation

# Without any event, everything is looked at again after this time.
RESYNC_SECONDS = 300.0


@dataclass(frozen=True)
class Statement:
    """An object, and the operator's part of its status as it was and as it is to be."""

    kind: Kind
    subject: ResourcePool | WorkerGroup
    before: ApiModel
    after: ApiModel
    ready_before: Condition | None
    ready: Condition


@dataclass(frozen=True)
class Statements:
    """What is true of all objects of a cluster, and when to look again if nothing happens."""

    statements: tuple[Statement, ...]
    # None when there are no objects.
    look_again_seconds: float | None


def status(
    observed: Observed,
    sharing: Sharing,
    seating: Mapping[str, Seating],
    failure: ApplyFailure | None,
    now: datetime,
) -> Statements:
    """Statements on all pools and groups of the cluster."""
    situation = Situation(observed, sharing, seating, failure, now)
    waits = [GRACE.total_seconds() if situation.agent is AgentLiveness.AWAY else RESYNC_SECONDS]
    statements = []
    pools: dict[str, Finding] = {}
    for pool in observed.pools:
        concluded = pool_conditions(pool, situation)
        pools[pool.name] = concluded.weakest
        waits.append(concluded.look_again_seconds)
        after = ResourcePoolStatus(
            conditions=concluded.conditions, observed_generation=pool.generation, cluster=pool.cluster
        )
        before = pool.status.model_copy(update={"reservation": None})
        statements.append(_statement(RESOURCE_POOL, pool, before, after, concluded.ready))
    for group in observed.groups:
        concluded = group_conditions(group, situation, pools)
        waits.append(concluded.look_again_seconds)
        after_ = WorkerGroupStatus(
            conditions=concluded.conditions,
            observed_generation=group.generation,
            world_size=world_size(group, situation),
        )
        before_ = group.status.model_copy(update={"ranks": None})
        statements.append(_statement(WORKER_GROUP, group, before_, after_, concluded.ready))
    return Statements(tuple(statements), min(waits) if statements else None)


def _statement(
    kind: Kind, subject: ResourcePool | WorkerGroup, before: ApiModel, after: ApiModel, ready: Condition
) -> Statement:
    return Statement(kind, subject, before, after, find(subject.status.conditions, "Ready"), ready)
