"""Whether a pool with `spec.idle` is idle, and whether the operator has suspended it for that, or deletes it.

The record is in the pool's status. It holds times, which do not change while nothing happens. A pool is deleted only
after its status says that it is suspended: then it has nothing that anybody could lose.
"""

from datetime import datetime, timedelta
from itertools import chain

from workergroups_api.conditions import Explanation, find
from workergroups_api.manifest import WORKER_GROUP
from workergroups_api.names import WAKE_AT_ANNOTATION
from workergroups_api.pool_status import PoolIdle
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import ConditionType, EventReason, IdleAction
from workergroups_api.vouching import doubt
from workergroups_common.text import plain
from workergroups_operator.observed import Observed
from workergroups_operator.policy.deadline import date_and_time
from workergroups_operator.policy.run import has_ended

# Of an annotation that anybody may set: the status keeps no more of it.
MAX_WAKE_AT = 64


def idle_pools(observed: Observed) -> dict[str, PoolIdle]:
    """Return the record of each pool that gives back its devices while it is idle, by name."""
    found = {pool.name: _idle(pool, observed) for pool in observed.pools}
    return {name: record for name, record in found.items() if record is not None}


def in_use(pool: ResourcePool, observed: Observed) -> str | None:
    """Return who uses the pool, or why that is unknown; None if it is not used."""
    if wanted := _wanted_by(pool, observed):
        return wanted
    ready, report = find(pool.status.conditions, ConditionType.READY), pool.status.reservation
    if ready is None or ready.status != "True":
        return "it is not ready, so it cannot be used yet"
    if report is None or report.drivers is None:
        return "the agent has not counted the drivers yet"
    return f"{report.drivers} drivers are connected to its Ray cluster" if report.drivers else None


def ends_at(pool: ResourcePool, since: datetime) -> datetime:
    """Return when a pool that is idle since then is suspended or deleted."""
    assert pool.spec.idle is not None
    return since + timedelta(seconds=pool.spec.idle.after_seconds)


def named_by(pool: ResourcePool, observed: Observed) -> str | None:
    """Return a group that names the pool, also one that is suspended or has completed; None if there is none."""
    return next((group.name for group in observed.groups_on.get(pool.name, ())), None)


def may_be_deleted(pool: ResourcePool, observed: Observed) -> bool:
    """Return whether the pool is not needed, as far as the operator knows: it must look for groups that name it."""
    idle, record = pool.spec.idle, _idle(pool, observed)
    if idle is None or idle.action is not IdleAction.DELETE or record is None or not record.suspended:
        return False
    was_suspended = pool.status.idle is not None and pool.status.idle.suspended
    return bool(was_suspended) and named_by(pool, observed) is None


def deleted_pools(observed: Observed) -> dict[str, Explanation]:
    """Return why pools must be deleted, by name."""
    if observed.named_pools is None:
        return {}
    due = (pool for pool in observed.pools if may_be_deleted(pool, observed))
    return {pool.name: _deleted(pool) for pool in due if pool.name not in observed.named_pools}


def _deleted(pool: ResourcePool) -> Explanation:
    since = pool.status.idle.since if pool.status.idle else None
    when = f" since {date_and_time(since)}" if since else ""
    return Explanation(
        EventReason.DELETED,
        f"the operator has deleted the pool, as spec.idle says: it has not been used{when}, and no group names it",
    )


def _idle(pool: ResourcePool, observed: Observed) -> PoolIdle | None:
    if pool.spec.idle is None or pool.spec.suspend:
        return None
    before, woken = pool.status.idle, _wake_at(pool)
    is_woken = before is not None and woken != before.wake_at
    if before is not None and before.suspended and not is_woken:
        return before if _wanted_by(pool, observed) is None else PoolIdle(wake_at=woken)
    if is_woken or in_use(pool, observed) is not None:
        return PoolIdle(wake_at=woken)
    since = _since(pool, (before.since if before else None) or observed.at.replace(microsecond=0), observed.at)
    is_over = observed.at >= ends_at(pool, since) and _is_vouched_for(pool, observed)
    return PoolIdle(since=since, suspended=is_over or None, wake_at=woken)


def _since(pool: ResourcePool, before: datetime, now: datetime) -> datetime:
    """Return since when the pool is idle: a driver may have come and gone without being counted."""
    report = pool.status.reservation
    ended = report.last_driver_end if report else None
    return before if ended is None else max(before, min(ended, now.replace(microsecond=0)))


def _is_vouched_for(pool: ResourcePool, observed: Observed) -> bool:
    """Return whether the agent is connected to the present head, and vouches for what it reports of the pool."""
    report, heartbeat = pool.status.reservation, observed.agent
    if report is None or heartbeat.is_silent or heartbeat.away_seconds or doubt(pool.uid, heartbeat.doubts) is not None:
        return False
    return heartbeat.session == report.session and heartbeat.known == (observed.head, report.session)


def _wanted_by(pool: ResourcePool, observed: Observed) -> str | None:
    """Return a group that has ranks on the pool, or waits for it; of one that cannot be read, that is unknown."""
    odd = (each.name for each in observed.unreadable if each.kind is WORKER_GROUP)
    groups = observed.groups_on.get(pool.name, ())
    wanting = (group.name for group in groups if not group.spec.suspend and not has_ended(group, observed))
    name = next(chain(wanting, odd), None)
    return None if name is None else f"group {name} wants it"


def _wake_at(pool: ResourcePool) -> str | None:
    value = (pool.metadata.get("annotations") or {}).get(WAKE_AT_ANNOTATION)
    return None if value is None else plain(str(value)[:MAX_WAKE_AT], MAX_WAKE_AT)
