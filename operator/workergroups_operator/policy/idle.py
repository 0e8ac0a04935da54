"""Whether nobody uses a pool with `spec.idle`, and whether the operator has suspended it for that.

The record is in the pool's status. It holds times, which do not change while nothing happens.
"""

from datetime import datetime, timedelta

from workergroups_api.conditions import find
from workergroups_api.manifest import WORKER_GROUP
from workergroups_api.names import WAKE_AT_ANNOTATION
from workergroups_api.resource_pool import PoolIdle, ResourcePool
from workergroups_api.vocabulary import ConditionType
from workergroups_operator.observed import Observed

# Of an annotation that anybody may set: the status keeps no more of it.
MAX_WAKE_AT = 64


def idle_pools(observed: Observed) -> dict[str, PoolIdle]:
    """Return the record of each pool that gives back its devices while nobody uses it, by name."""
    found = {pool.name: _idle(pool, observed) for pool in observed.pools}
    return {name: record for name, record in found.items() if record is not None}


def in_use(pool: ResourcePool, observed: Observed) -> str | None:
    """Return who uses the pool, or why nobody knows; None if nobody does."""
    if wanted := _wanted_by(pool, observed):
        return wanted
    ready, report = find(pool.status.conditions, ConditionType.READY), pool.status.reservation
    if ready is None or ready.status != "True":
        return "it is not ready, so nobody can use it yet"
    if report is None or report.drivers is None:
        return "the agent has not counted the drivers yet"
    return f"{report.drivers} drivers are connected to its Ray cluster" if report.drivers else None


def ends_at(pool: ResourcePool, since: datetime) -> datetime:
    """Return when a pool that is idle since then is suspended."""
    assert pool.spec.idle is not None
    return since + timedelta(seconds=pool.spec.idle.after_seconds)


def _idle(pool: ResourcePool, observed: Observed) -> PoolIdle | None:
    if pool.spec.idle is None or pool.spec.suspend:
        return None
    before, woken = pool.status.idle, _wake_at(pool)
    is_woken = before is not None and woken != before.wake_at
    if before is not None and before.suspended and not is_woken:
        return before if _wanted_by(pool, observed) is None else PoolIdle(wake_at=woken)
    if is_woken or in_use(pool, observed) is not None:
        return PoolIdle(wake_at=woken)
    since = (before.since if before else None) or observed.at.replace(microsecond=0)
    return PoolIdle(since=since, suspended=observed.at >= ends_at(pool, since) or None, wake_at=woken)


def _wanted_by(pool: ResourcePool, observed: Observed) -> str | None:
    """Return a group that has ranks on the pool, or waits for it; nobody knows whether one that cannot be read does."""
    odd = (each.name for each in observed.unreadable if each.kind is WORKER_GROUP)
    groups = (group for group in observed.groups if not group.spec.suspend)
    wanting = (group.name for group in groups if pool.name in (ref.name for ref in group.pools))
    name = next((*wanting, *odd).__iter__(), None)
    return None if name is None else f"group {name} wants it"


def _wake_at(pool: ResourcePool) -> str | None:
    value = (pool.metadata.get("annotations") or {}).get(WAKE_AT_ANNOTATION)
    return None if value is None else str(value)[:MAX_WAKE_AT]
