"""What keeps running of objects that the operator cannot read: what it planned while it could.

If the spec of a running group becomes unreadable, the group keeps its ranks, and so do the groups
on a pool that cannot be read. Only the object's status reports the trouble.
"""

from collections.abc import Mapping

from workergroups_api import names
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP
from workergroups_api.plan import PlannedGroup, PlannedPool
from workergroups_operator.observed import Observed
from workergroups_operator.policy.bundles import Assignment, Blocked


def kept_node_groups(observed: Observed) -> set[str]:
    """Return the names of the node groups of pools that cannot be read."""
    return {names.node_group(odd.name, odd.uid) for odd in observed.unreadable if odd.kind is RESOURCE_POOL}


def kept_pools(observed: Observed) -> tuple[PlannedPool, ...]:
    """Return what the plan has of pools that cannot be read. It is unknown along which topology they are numbered."""
    odd = {each.uid for each in observed.unreadable if each.kind is RESOURCE_POOL}
    planned = observed.plan.pools if observed.plan else ()
    return tuple(pool.model_copy(update={"domains": None}) for pool in planned if pool.uid in odd)


def kept_groups(observed: Observed, bundles: Mapping[str, Assignment]) -> tuple[PlannedGroup, ...]:
    """Return what the plan has of groups that cannot be read, or that have no bundles since a pool cannot be read."""
    if observed.plan is None:
        return ()
    odd = {each.uid for each in observed.unreadable if each.kind is WORKER_GROUP}
    pools = {pool.name for pool in kept_pools(observed)}
    placeless = {group.uid for group in observed.groups if isinstance(bundles[group.name], Blocked)}
    return tuple(
        group
        for group in observed.plan.groups
        if group.uid in odd or (group.uid in placeless and pools.intersection(part.pool for part in group.bundles))
    )
