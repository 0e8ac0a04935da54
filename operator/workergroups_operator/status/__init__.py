"""Step seven: conclude what is true of each object, from all that the earlier steps found. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from workergroups_api.conditions import Explanation, find
from workergroups_api.manifest import RAY_CLUSTER, RESOURCE_POOL, WORKER_GROUP
from workergroups_api.pool_status import LostDrivers, ResourcePoolStatus
from workergroups_api.report import GroupReport
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import IN_QUEUE, ConditionType, EventReason, LaunchState
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.decisions import Decisions
from workergroups_operator.failures import Failures
from workergroups_operator.observed import Observed
from workergroups_operator.policy.idle import ends_at
from workergroups_operator.policy.incarnation import why_new
from workergroups_operator.policy.queueing import GATHER_SECONDS, is_gathering
from workergroups_operator.policy.release import is_late, is_released
from workergroups_operator.policy.run import deadline_of, expires_at
from workergroups_operator.status import group as groups
from workergroups_operator.status import pool as pools
from workergroups_operator.status.conclusion import Conclusion, StatusInputs, StatusUpdate, unvouched
from workergroups_operator.status.devices import device_states
from workergroups_operator.status.kept_failures import kept_failures, new_failures, told
from workergroups_operator.status.unknown import unreadable
from workergroups_operator.templates import Templates
from workergroups_operator.templates.live import last_roll
from workergroups_operator.timings import Timings

# What a group's author must supply before its ranks can be created.
_LACKS = (LaunchState.WAITING_FOR_CODE, LaunchState.WAITING_FOR_ENVIRONMENT)


@dataclass(frozen=True)
class Statuses:
    """What is true of all objects of a cluster, and when to look again if nothing happens."""

    updates: tuple[StatusUpdate, ...]
    # None without objects; infinite if an event reports each change.
    requeue_after: float | None
    # The finished groups that must be deleted now.
    expired: tuple[WorkerGroup, ...] = ()


def status(
    observed: Observed,
    templates: Templates,
    decisions: Decisions,
    failures: Failures,
    timings: Timings,
    now: datetime,
) -> Statuses:
    """Return the status of all pools and groups of the cluster."""
    inputs = StatusInputs(observed, templates, decisions, failures, now)
    of_pools = [pools.pool_conditions(pool, inputs) for pool in observed.pools]
    by_pool = {
        pool.name: groups.ConcludedPool(pool, each, pools.placed_nodes(pool, inputs))
        for pool, each in zip(observed.pools, of_pools, strict=True)
    }
    reports = [decisions.groups.reports[group.name] for group in observed.groups]
    of_groups = [
        groups.group_conditions(group, report, inputs, by_pool)
        for group, report in zip(observed.groups, reports, strict=True)
    ]
    ready = [group.name for group, each in zip(observed.groups, of_groups, strict=True) if each.ready.status == "True"]
    updates = (
        *(unreadable(odd, now) for odd in observed.unreadable),
        *(_of_pool(pool, each, inputs, ready) for pool, each in zip(observed.pools, of_pools, strict=True)),
        *(
            _of_group(group, report, each, inputs)
            for group, report, each in zip(observed.groups, reports, of_groups, strict=True)
        ),
    )
    expiries = [
        (group, at) for group, each in zip(observed.groups, of_groups, strict=True) if (at := _expiry(group, each))
    ]
    waits = [each.requeue_after for each in (*of_pools, *of_groups)]
    waits += [(at - now).total_seconds() for _, at in expiries if at > now]
    requeue_after = min((*waits, *_waits(inputs, updates, timings))) if updates else None
    return Statuses(updates, requeue_after, tuple(group for group, at in expiries if at <= now))


def _of_pool(pool: ResourcePool, concluded: Conclusion, inputs: StatusInputs, ready: Sequence[str]) -> StatusUpdate:
    before = pool.status.model_copy(update={"reservation": None})
    after = ResourcePoolStatus(
        conditions=concluded.conditions,
        observed_generation=pool.generation,
        deadline=concluded.deadline,
        cluster_name=pool.cluster,
        nodes=pools.node_count(pool, inputs),
        selector=pools.selector(pool),
        victims=inputs.decisions.sizes[pool.name].victims or None,
        accelerators=pool.spec.described_accelerators,
        release=inputs.decisions.releases.get(pool.name),
        idle=inputs.decisions.idle.get(pool.name),
        ready_nodes=_known(pools.ready_nodes(pool, inputs), pool, inputs),
        ray_version=found.ray if (found := pools.node_versions(pool, inputs)) else None,
        drivers=inputs.decisions.drivers.get(pool.name),
        roll=_roll(pool, inputs),
        template=pools.template_that_ran(pool, inputs),
    )
    ready_before = find(pool.status.conditions, ConditionType.READY)
    is_news = _lost(after) not in (None, _lost(before))
    lost = pools.drivers_lost(pool, inputs) if is_news else None
    is_cause = concluded.weakest.decisive
    return StatusUpdate(
        RESOURCE_POOL,
        pool.metadata,
        before,
        after,
        ready_before,
        concluded.ready,
        is_cause=is_cause,
        news=(lost,) if lost else (),
        devices=device_states(pool, inputs, ready),
    )


def _roll(pool: ResourcePool, inputs: StatusInputs) -> str | None:
    """Return the name of the last roll that the RayCluster is known to have.

    The next reconcile relies on it if the RayCluster has no node group of the pool. If the status had the roll before
    the RayCluster, a reconcile that reads the RayCluster in between would take it for done, and write the old head
    again.
    """
    is_written = inputs.failures.is_written(RAY_CLUSTER)
    return inputs.templates.roll(pool) if is_written else last_roll(inputs.observed, pool)


def _expiry(group: WorkerGroup, concluded: Conclusion) -> datetime | None:
    """Return when the group must be deleted, None if it must stay."""
    if group.status.observed_generation != group.generation:
        return None
    return expires_at(group.spec, group.status.conditions, concluded.conditions)


def _lost(status: ResourcePoolStatus) -> LostDrivers | None:
    return status.drivers.lost if status.drivers else None


def _of_group(group: WorkerGroup, report: GroupReport, concluded: Conclusion, inputs: StatusInputs) -> StatusUpdate:
    before = group.status.model_copy(update={"ranks": None})
    incarnation = inputs.decisions.groups.incarnations.get(group.name)
    present = {
        "conditions": concluded.conditions,
        "observed_generation": group.generation,
        "deadline": concluded.deadline,
        "world_size": groups.world_size(group, inputs),
        "ready_ranks": _known(report.ready_count, group, inputs),
        "failures": kept_failures(group, inputs),
    }
    after = before.model_copy(update=present | (incarnation.recorded() if incarnation is not None else {}))
    ready_before = find(group.status.conditions, ConditionType.READY)
    is_cause = concluded.weakest.decisive
    news: list[Explanation] = []
    # Else `Ready` tells the failure.
    if not is_cause and (failed := new_failures(before.failures, after.failures, or_reasons=True)):
        news.append(Explanation(EventReason.RANK_FAILED, told(failed)))
    if why := why_new(before, incarnation):
        news.append(Explanation(EventReason.NEW_INCARNATION, why))
    call = group.status.ranks.oldest_call if group.status.ranks else None
    return StatusUpdate(
        WORKER_GROUP,
        group.metadata,
        before,
        after,
        ready_before,
        concluded.ready,
        is_cause=is_cause or concluded.ready.reason in _LACKS,
        news=tuple(news),
        oldest_call=call.since if call else None,
        new_failures=new_failures(before.failures, after.failures),
    )


def _known(count: int, subject: ResourcePool | WorkerGroup, inputs: StatusInputs) -> int | None:
    return None if unvouched(subject, inputs) else count


def _restarts(inputs: StatusInputs) -> Iterator[datetime]:
    """Yield when ranks of groups are restarted that have failed. No event reports that a pause is over."""
    decisions = inputs.decisions
    for group in inputs.observed.groups:
        response = decisions.groups.failures.get(group.name)
        if response is None or response.restart_at is None or response.failure.is_paused:
            continue
        incarnation = decisions.groups.incarnations[group.name]
        if response.failure.incarnation == incarnation.number and incarnation.restarts.failed_at is not None:
            yield response.restart_at


def _deadlines_of_runs(inputs: StatusInputs) -> Iterator[float]:
    """Yield in how many seconds runs must have ended."""
    for group in inputs.observed.groups:
        incarnation = inputs.decisions.groups.incarnations.get(group.name)
        run = incarnation.run if incarnation is not None else None
        deadline = deadline_of(group.spec, run) if run is not None else None
        if deadline is not None:
            yield max(0.0, (deadline - inputs.now).total_seconds())


def _releases(inputs: StatusInputs) -> Iterator[float]:
    """Yield when a pool that has given back its nodes tries again, or must give them back."""
    observed, now = inputs.observed, inputs.now
    for pool in observed.pools:
        record = inputs.decisions.releases.get(pool.name)
        if record is not None and record.next is not None and is_released(pool, record, observed.at):
            yield max(0.0, (record.next - now).total_seconds())
        elif is_late(pool, now) and not is_late(pool, observed.at):
            yield 0.0  # The deadline has passed since the operator decided.


def _waits(inputs: StatusInputs, updates: Sequence[StatusUpdate], timings: Timings) -> Iterator[float]:
    """Yield after how many seconds to look again, for each reason to do so."""
    decisions, now = inputs.decisions, inputs.now
    yield inputs.observed.agent.look_again_seconds
    yield inputs.observed.leaving_head_seconds or float("inf")
    for retries in (decisions.restart.retries, *(each.retries for each in decisions.groups.incarnations.values())):
        if retries.next is not None:
            yield max(0.0, (retries.next - now).total_seconds())
    yield from (max(0.0, (at - now).total_seconds()) for at in _restarts(inputs))
    yield from _releases(inputs)
    yield from _deadlines_of_runs(inputs)
    for pool in inputs.observed.pools:
        idle = decisions.idle.get(pool.name)
        # After that time, a pool is waiting for the agent to vouch for its report, of which the Lease tells.
        if idle is not None and idle.since is not None and inputs.observed.at < ends_at(pool, idle.since):
            yield max(0.0, (ends_at(pool, idle.since) - now).total_seconds())
    if decisions.groups.environments:
        yield timings.sources
    if is_gathering(inputs.observed):
        yield GATHER_SECONDS
    waiting = {name for name, each in decisions.groups.environments.items() if isinstance(each, Explanation)}
    for update in updates:
        # No event reports the end of an obstacle, which may lack our label, or the arrival of what a group reads.
        is_waiting = update.kind is WORKER_GROUP and update.metadata["name"] in waiting
        # Nor of what Kueue says of its queue, since the operator does not watch Workloads.
        is_queued = update.ready.reason in IN_QUEUE
        if decisions.obstacle or is_waiting or is_queued:
            yield timings.look_again.pause((now - update.ready.last_transition_time).total_seconds())
