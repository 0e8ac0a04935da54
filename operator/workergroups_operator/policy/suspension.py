"""Suspended pools and groups: pools without pods, and groups without ranks.

A suspended pool gives back its devices. Its groups keep their claim on its bundles. A group that is suspended itself
gives up its bundles, which the pool keeps: when it is resumed, it comes after the groups that have taken them.
"""

from collections.abc import Collection, Mapping, Sequence

from workergroups_api.conditions import Explanation, find
from workergroups_api.manifest import RESOURCE_POOL
from workergroups_api.pool_status import PoolIdle
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.retries import Retries
from workergroups_api.vocabulary import ConditionType, Reason
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.observed import Observed
from workergroups_operator.policy.bundles import Assignment, Finished, Suspended
from workergroups_operator.policy.deadline import clock, date_and_time
from workergroups_operator.policy.idle import idle_pools
from workergroups_operator.policy.queueing import is_cluster_suspended
from workergroups_operator.policy.release import is_released


def suspended_pools(observed: Observed) -> dict[str, Explanation]:
    """Return why pools have no pods, by name; without those that should have some, and those released just now."""
    found: dict[str, Explanation] = {}
    idles = idle_pools(observed)
    for pool in observed.pools:
        record = pool.status.release
        if pool.spec.suspend:
            found[pool.name] = _by_spec(pool)
        elif (idle := idles.get(pool.name)) is not None and idle.suspended:
            found[pool.name] = _unused(pool, idle)
        elif record is not None and is_released(pool, record, observed.at):
            found[pool.name] = _released(pool, record)
    return found


def with_released(
    observed: Observed, suspended: Mapping[str, Explanation], records: Mapping[str, Retries]
) -> dict[str, Explanation]:
    """Return the suspended pools and those that are released in this reconcile. `records` are those of `releases`."""
    released = {
        pool.name: _released(pool, record)
        for pool in observed.pools
        if (record := records.get(pool.name)) is not None and is_released(pool, record, observed.at)
    }
    return {**released, **suspended}


def suspended_groups(
    groups: Sequence[WorkerGroup], bundles: Mapping[str, Assignment], pools: Mapping[str, Explanation]
) -> dict[str, Explanation]:
    """Return why groups that could have ranks have none, by name: they are suspended, or their runs have ended.

    `pools` are the suspended ones.
    """
    found: dict[str, Explanation] = {}
    for group in groups:
        assignment = bundles[group.name]
        if isinstance(assignment, Suspended | Finished):
            found[group.name] = assignment.why
        pool = next((part.pool for part in assignment.bundles if part.pool in pools), None)
        if pool is not None:
            found[group.name] = _of_pool(pool, pools[pool])
    return found


def terminating_pools(observed: Observed, suspended: Collection[str]) -> frozenset[str]:
    """Return the pools whose nodes end, if there are any left; when they start again, they get the present spec.

    They are the suspended ones, and all pools while their RayCluster is suspended, by its queue or by hand.
    """
    is_whole = is_cluster_suspended(observed)
    return frozenset(pool.name for pool in observed.pools if is_whole or pool.name in suspended)


def is_off(observed: Observed, pools: Mapping[str, Explanation]) -> bool:
    """Return whether the cluster needs no Ray: all of its pools are suspended. `pools` are the suspended ones.

    A pool that cannot be read keeps what it has, and so the cluster.
    """
    if any(odd.kind is RESOURCE_POOL for odd in observed.unreadable):
        return False
    return bool(observed.pools) and all(pool.name in pools for pool in observed.pools)


def by_priority(observed: Observed) -> list[WorkerGroup]:
    """Return the groups in the order in which they choose their bundles.

    The oldest come first, except that a group that was resumed, or runs again, takes no bundles from those that have
    them.
    """
    return sorted(observed.groups, key=lambda group: _was_suspended(group) and not _has_bundles(group, observed))


def _was_suspended(group: WorkerGroup) -> bool:
    has_finished = group.status.run is not None and group.status.run.reason is not None
    return has_finished or find(group.status.conditions, ConditionType.SUSPENDED) is not None


def _has_bundles(group: WorkerGroup, observed: Observed) -> bool:
    if observed.plan is None:
        return group.status.session is not None
    planned = observed.planned(group.uid)
    return planned is not None and bool(planned.bundles)


def _by_spec(pool: ResourcePool) -> Explanation:
    return Explanation(
        Reason.SUSPENDED,
        "spec.suspend is true, so the pool gets no pods, and Suspended says whether some are left; to start it: "
        + pool.in_namespace(f"workergroups resume {pool.name}"),
    )


def _unused(pool: ResourcePool, idle: PoolIdle) -> Explanation:
    since = f" since {date_and_time(idle.since)}" if idle.since else ""
    return Explanation(
        Reason.IDLE,
        f"the pool has not been used{since}, so it gets no pods, as spec.idle says, and Suspended says "
        "whether some are left; a group on it wakes it, and so does: "
        + pool.in_namespace(f"workergroups job submit {pool.name}"),
    )


def _released(pool: ResourcePool, record: Retries) -> Explanation:
    when = f"trying again at {clock(record.next)}" if record.next else ""
    return Explanation(
        Reason.RELEASED,
        f"not all {pool.spec.nodes} nodes were ready within {pool.spec.progress_deadline_seconds} s, so the pool gave "
        f"back those that it had (try {record.failures}), for others to use; {when}",
    )


def _of_pool(pool: str, why: Explanation) -> Explanation:
    is_by_spec = why.reason == Reason.SUSPENDED
    return Explanation(Reason.POOL_SUSPENDED if is_by_spec else Reason.POOL_NOT_READY, f"pool {pool}: {why.message}")
