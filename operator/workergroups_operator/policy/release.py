"""When a pool that does not get all its nodes gives back those that it has.

So two pools that have half of their nodes never block each other for longer than their deadline. The record of the
tries is in the pool's status, so it survives a restart of the operator.
"""

import hashlib
from collections.abc import Collection
from datetime import datetime, timedelta

from workergroups_api.conditions import find
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.retries import Retries
from workergroups_api.vocabulary import Component, ConditionType, OnDeadline
from workergroups_api.worker_group import WorkerGroup
from workergroups_common.backoff import Backoff
from workergroups_operator.observed import Observed, is_running, node_group_of
from workergroups_operator.policy.agent_liveness import AgentLiveness, AgentState
from workergroups_operator.policy.queueing import is_cluster_suspended

# Seconds without nodes; up to twice as long, so that pools that failed together do not try together.
PAUSES = Backoff(30.0, 900.0)


def releases(observed: Observed, agent: AgentLiveness, rolling: Collection[str] = ()) -> dict[str, Retries]:
    """Return the record of each pool that has given back its nodes since it was last ready, by name.

    `rolling` are the node groups whose nodes are being restarted: those that are not replaced yet keep their devices.
    """
    found = {
        pool.name: _release(pool, observed, agent, is_rolling=node_group_of(pool) in rolling) for pool in observed.pools
    }
    return {name: record for name, record in found.items() if record is not None}


def is_released(pool: ResourcePool, record: Retries | None, now: datetime) -> bool:
    """Return whether the pool has given back its nodes, and its next try has not begun."""
    is_asked = pool.spec.on_deadline is OnDeadline.RELEASE
    return is_asked and record is not None and record.next is not None and now < record.next


def _release(pool: ResourcePool, observed: Observed, agent: AgentLiveness, *, is_rolling: bool) -> Retries | None:
    record, ready = pool.status.release, find(pool.status.conditions, ConditionType.READY)
    is_asked = pool.spec.on_deadline is OnDeadline.RELEASE
    if not is_asked or pool.spec.suspend or (ready is not None and ready.status == "True"):
        return None
    if is_released(pool, record, observed.at) or not is_late(pool, observed.at) or is_rolling:
        return record
    if _has_all_nodes(pool, observed) or is_cluster_suspended(observed) or _may_have_ranks(pool, observed, agent):
        return record
    failures = 1 + (record.failures if record else 0)
    return Retries(failures=failures, next=(observed.at + _pause(pool.uid, failures)).replace(microsecond=0))


def is_late(pool: ResourcePool, now: datetime) -> bool:
    """Return whether the deadline of the present try has passed, of a pool that then gives back its nodes."""
    status = pool.status
    if pool.spec.on_deadline is not OnDeadline.RELEASE:
        return False
    if status.deadline is None or status.observed_generation != pool.generation or now < status.deadline:
        return False
    return status.release is None or status.release.next is None or status.deadline > status.release.next


def _pause(uid: str, failures: int) -> timedelta:
    spread = int(hashlib.sha256(f"{uid}/{failures}".encode()).hexdigest()[:8], 16) / 2**32
    return timedelta(seconds=PAUSES.after(failures) * (1 + spread))


def _has_all_nodes(pool: ResourcePool, observed: Observed) -> bool:
    pods = observed.pods_of(Component.WORKER, node_group_of(pool))
    return sum(map(is_running, pods)) >= pool.spec.nodes


def _may_have_ranks(pool: ResourcePool, observed: Observed, agent: AgentLiveness) -> bool:
    groups = [group for group in observed.groups if pool.name in (ref.name for ref in group.pools)]
    may_have = observed.head is not None or agent.state is AgentState.HEAD_AWAY
    return may_have and any(_may_run(group, observed, agent) for group in groups)


def _may_run(group: WorkerGroup, observed: Observed, agent: AgentLiveness) -> bool:
    """Return whether ranks of the group exist in the present Ray session, as far as is known."""
    planned = observed.planned(group.uid)
    session = group.status.session or (planned.session if planned else None)
    if session is None or (agent.session is not None and agent.session != session):
        return False
    report = group.status.ranks
    return not agent.is_believed or report is None or report.session != session or report.created > 0
