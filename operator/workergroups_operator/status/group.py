"""A group's conditions: PoolsReady, RanksCreated, RanksReady, Ready that sums them up, Progressing, and those aside."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from workergroups_api.conditions import Explanation, Finding, find
from workergroups_api.failure_policy import KeptFailure
from workergroups_api.manifest import CONFIG_MAP, ROLE, SECRET
from workergroups_api.plan import PlannedBundles
from workergroups_api.report import GroupReport, RunReport
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import IN_QUEUE, ConditionType, LaunchState, RankEnd, Reason, Restart
from workergroups_api.worker_group import WorkerGroup
from workergroups_common.ranges import contains, ranges
from workergroups_operator.policy.bundles import Assigned
from workergroups_operator.policy.deadline import clock
from workergroups_operator.policy.incarnation import GroupIncarnation
from workergroups_operator.policy.rank_failures import FailureResponse
from workergroups_operator.policy.retry import BUDGET, announced, is_exhausted
from workergroups_operator.status.conclusion import Conclusion, StatusInputs, conclude, finding, unvouched
from workergroups_operator.status.kept_failures import kept_failures
from workergroups_operator.status.suspended import group_suspended, not_ready
from workergroups_operator.status.up_to_date import group_up_to_date, missing_environment, restart_of

# Reasons of a pool that say enough about the ranks on it.
_OF_ITS_RANKS = (Reason.HEAD_AWAY, Reason.NODE_LEAVING)
_CHAIN = (ConditionType.POOLS_READY, ConditionType.RANKS_CREATED, ConditionType.RANKS_READY)
_pools_finding = partial(finding, ConditionType.POOLS_READY)
_created_finding = partial(finding, ConditionType.RANKS_CREATED)
_ready_finding = partial(finding, ConditionType.RANKS_READY)
_complete_finding = partial(finding, ConditionType.COMPLETE)


class ConcludedPool(NamedTuple):
    """A pool, and what was concluded of it."""

    pool: ResourcePool
    conclusion: Conclusion
    # The nodes that have their bundles and run, in ascending order.
    placed: Sequence[int]


def group_conditions(
    group: WorkerGroup, report: GroupReport, inputs: StatusInputs, pools: Mapping[str, ConcludedPool]
) -> Conclusion:
    """Return the group's conditions, given its believed report."""
    unknown = unvouched(group, inputs)
    why = inputs.decisions.groups.suspended.get(group.name)
    chain = _chain(group, report, inputs, pools) if why is None else [not_ready(type_, why) for type_ in _CHAIN]
    aside = (
        *_complete(group, report, unknown, inputs),
        *group_suspended(group, report, unknown, inputs),
        group_up_to_date(group, inputs),
    )
    ended = inputs.decisions.groups.finished.get(group.name)
    complete = ended if ended is not None and ended.reason == Reason.COMPLETE else None
    return conclude(group, chain, aside, inputs.now, complete=complete)


def _chain(
    group: WorkerGroup, report: GroupReport, inputs: StatusInputs, pools: Mapping[str, ConcludedPool]
) -> list[Finding]:
    pools_ready = _pools_ready(group, inputs, pools)
    created = _ranks_created(group, report, inputs, is_launched=pools_ready.status == "True")
    return [pools_ready, created, _ranks_ready(group, report, inputs)]


def world_size(group: WorkerGroup, inputs: StatusInputs) -> int | None:
    """Return how many ranks the group should have; None while it has no bundles."""
    return sum(part.count for part in inputs.decisions.groups.bundles[group.name].bundles) or None


def _pools_ready(group: WorkerGroup, inputs: StatusInputs, pools: Mapping[str, ConcludedPool]) -> Finding:
    assignment = inputs.decisions.groups.bundles[group.name]
    if not isinstance(assignment, Assigned):
        return _pools_finding("False", assignment.why)
    for part in assignment.bundles:
        weakest = pools[part.pool].conclusion.weakest
        if weakest.status != "True" and not _holds(pools[part.pool], part):
            is_queued = weakest.reason in IN_QUEUE
            reason = Reason.POOL_QUEUED if is_queued else Reason.POOL_NOT_READY
            if weakest.reason in _OF_ITS_RANKS:
                reason = Reason(weakest.reason)
            why = Explanation(reason, f"pool {part.pool}: {weakest.message}")
            return _pools_finding(weakest.status, why, final=is_queued)
    reserved = ", ".join(dict.fromkeys(part.pool for part in assignment.bundles))
    return _pools_finding("True", Explanation(Reason.POOLS_READY, f"reserved: {reserved}"))


def _holds(on: ConcludedPool, part: PlannedBundles) -> bool:
    """Return whether the group's own bundles are reserved, though the pool is not ready: it may be growing."""
    cluster = find(on.conclusion.conditions, ConditionType.CLUSTER_READY)
    if cluster is None or cluster.status != "True":
        return False
    nodes = part.nodes(on.pool.spec.processes_per_node)
    return bisect_left(on.placed, nodes.stop) - bisect_left(on.placed, nodes.start) == len(nodes)


def _ranks_created(group: WorkerGroup, report: GroupReport, inputs: StatusInputs, *, is_launched: bool) -> Finding:
    if (unknown := unvouched(group, inputs)) is not None:
        return _created_finding("Unknown", unknown)
    total = world_size(group, inputs) or 0
    count = f"{report.created} of {total} ranks created{_failed_before(group, report, inputs)}"
    if (pool := inputs.decisions.rolling(group.name)) is not None:
        message = f"{count}: waiting until the nodes of pool {pool} are restarted"
        return _created_finding("False", Explanation(LaunchState.WAITING_FOR_POOLS, message))
    if report.state == LaunchState.LAUNCH_FAILED:
        why = Explanation(LaunchState.LAUNCH_FAILED, f"{report.message}; {_missing_package(report)}{_try_again(group)}")
        return _created_finding("False", why, decisive=True, final=True)
    if report.state == LaunchState.LAUNCH_INTERRUPTED:
        return _launch_interrupted(group, report, inputs)
    if total and report.created == total:
        return _created_finding("True", Explanation(Reason.RANKS_CREATED, f"{total} of {total} ranks created"))
    needs_secret = (SECRET,) if group.name in inputs.decisions.groups.environments else ()
    failure = inputs.failures.of(CONFIG_MAP, ROLE, *needs_secret)
    if failure:
        return _created_finding("False", failure)
    if not report.created and (missing := missing_environment(group, inputs)):
        return _created_finding("False", Explanation(missing.reason, f"{count}: {missing.message}"))
    message = f"{count}: {report.message}" if report.message else count
    # Until the agent reports an incarnation, it is launching it, unless it waits for pools.
    reason = LaunchState.LAUNCHING if is_launched and report.session is None else report.state
    return _created_finding("False", Explanation(reason, message))


def _launch_interrupted(group: WorkerGroup, report: GroupReport, inputs: StatusInputs) -> Finding:
    """Report when the next incarnation begins, or that there will be none."""
    retries = inputs.decisions.groups.incarnations[group.name].retries
    what = f"incarnation {report.incarnation}: {report.message or 'the launch was cut short'}"
    if is_exhausted(retries):
        message = f"{what}; so were the {BUDGET} incarnations before it; {_try_again(group)}"
        why = Explanation(LaunchState.LAUNCH_FAILED, message)
        return _created_finding("False", why, decisive=True, final=True)
    # Decisive, so that Ready does not name the ranks that died with the launch: the operator recreates them.
    why = Explanation(LaunchState.LAUNCH_INTERRUPTED, f"{what}; {announced(retries)}")
    return _created_finding("False", why, decisive=True)


def _ranks_ready(group: WorkerGroup, report: GroupReport, inputs: StatusInputs) -> Finding:
    if (unknown := unvouched(group, inputs)) is not None:
        return _ready_finding("Unknown", unknown)
    total = world_size(group, inputs) or 0
    count = f"{report.ready_count} of {total} ranks ready"
    response = inputs.decisions.groups.failures.get(group.name)
    if report.failures and response:
        return _failed(group, response, count)
    if report.hang and response:
        return _hung(group, response, count)
    if report.pauses:
        return _paused(report, count, is_ready=report.ready_count == total)
    if total and report.ready_count == total:
        return _ready_finding("True", Explanation(Reason.RANKS_READY, count))
    count += _failed_before(group, report, inputs)
    waiting = f"{count}; waiting for processes to start and constructors to return"
    return _ready_finding("False", Explanation(Reason.RANKS_STARTING, waiting if report.created else count))


def _failed_before(group: WorkerGroup, report: GroupReport, inputs: StatusInputs) -> str:
    """Return why ranks are being recreated, as the end of a clause; empty if it is not for a failure."""
    incarnation = inputs.decisions.groups.incarnations.get(group.name)
    for each in kept_failures(group, inputs):
        if incarnation is not None and _is_recreated(each, incarnation, report):
            where = f" in pod {each.pod}" if each.pod else ""
            return f", since rank {each.rank} of incarnation {each.incarnation}{where} failed: {each.message}"
    return ""


def _is_recreated(failure: KeptFailure, incarnation: GroupIncarnation, report: GroupReport) -> bool:
    """Return whether the rank that failed is not ready again: with the whole incarnation, or alone."""
    if failure.incarnation == incarnation.number:
        is_replaced = incarnation.births.get(failure.rank, 0) > (failure.birth or 0)
        return is_replaced and not contains(report.ready, failure.rank)
    return failure.incarnation == incarnation.number - 1 and not incarnation.births


def _failed(group: WorkerGroup, response: FailureResponse, count: str) -> Finding:
    """Report which rank failed, and what follows."""
    ranks = response.failure.ranks
    first, others = ranks[0], f" (and {len(ranks) - 1} more)" if len(ranks) > 1 else ""
    where = f" in pod {first.pod}" if first.pod else ""
    message = f"rank {first.rank}{where}{others}: {first.message}; {count}; {_next(group, response)}"
    is_final = response.restart_at is None
    return _ready_finding("False", Explanation(first.reason, message), decisive=True, final=is_final)


def _hung(group: WorkerGroup, response: FailureResponse, count: str) -> Finding:
    """Report a call that hangs. If the policy restarts nothing, the call may still return, so nothing is final."""
    is_left_alone = response.policy.restart is Restart.NEVER
    restart = f"the call may still return; to recreate the ranks: {restart_of(group)}"
    next_ = restart if is_left_alone else _next(group, response)
    message = f"{response.failure.ranks[0].message}; {count}; {next_}"
    is_final = response.restart_at is None and not is_left_alone
    return _ready_finding("False", Explanation(RankEnd.HUNG, message), decisive=True, final=is_final)


def _next(group: WorkerGroup, response: FailureResponse) -> str:
    policy, failure = response.policy, response.failure
    if policy.restart is Restart.NEVER:
        return _try_again(group)
    if response.restart_at is None:
        budget = f"spec.failurePolicy allows {policy.max_restarts} restarts within {policy.window_seconds} s"
        return f"{budget}, and there were {response.spent}; {_try_again(group)}"
    if failure.is_paused:
        return "the ranks are restarted once no rank is paused: see workergroups debug"
    number = f"{response.spent + 1} of {policy.max_restarts} within {policy.window_seconds} s"
    counted = f"restart {number}" if response.counts else "this restart does not count towards spec.failurePolicy"
    is_alone = response.births is not None
    who = f"of the ranks only {ranges(failure.numbers)}" if is_alone else "all ranks"
    verb = "is" if is_alone and len(failure.numbers) == 1 else "are"
    return f"{who} {verb} restarted at {clock(response.restart_at)}, {counted}"


def _try_again(group: WorkerGroup) -> str:
    return (
        "correct spec.worker or spec.roles, spec.env or the code, and the ranks start again; to start them unchanged: "
        + restart_of(group)
    )


def _missing_package(report: GroupReport) -> str:
    """Return what adds a package to the image, if one is missing; a module of the user's own comes with the code."""
    is_missing = "ModuleNotFoundError" in (report.message or "")
    return (
        "a package comes with the pool's spec.image or spec.setup, after a restart of the pool; " if is_missing else ""
    )


def _paused(report: GroupReport, count: str, *, is_ready: bool) -> Finding:
    """A pause is no failure: no deadline for readiness applies, and ranks that were ready stay so."""
    waiting = [pause for pause in report.pauses if not pause.attached]
    first = waiting[0] if waiting else report.pauses[0]
    others = f" (of the paused ranks {report.paused})" if len(report.pauses) > 1 else ""
    if waiting:
        what = f"rank {first.rank}{others} waits for a debugger at {first.where}"
    else:
        what = f"a debugger is connected to rank {first.rank}{others}, which was at {first.where}"
    reason = Reason.PAUSED_BY_DEBUGGER if waiting else Reason.DEBUGGER_ATTACHED
    why = Explanation(reason, f"{count}; {what}: see workergroups debug")
    return _ready_finding("True", why) if is_ready else _ready_finding("False", why, final=True)


def _complete(
    group: WorkerGroup, report: GroupReport, unknown: Explanation | None, inputs: StatusInputs
) -> tuple[Finding, ...]:
    """Find out whether the method that a group runs has returned on all ranks; other groups have no such condition.

    `unknown` is why Ray's state is unknown.
    """
    if group.spec.run is None:
        return ()
    ended = inputs.decisions.groups.finished.get(group.name)
    if ended is not None:
        return (_complete_finding("True" if ended.reason == Reason.COMPLETE else "False", ended),)
    if unknown is not None:
        return (_complete_finding("Unknown", unknown),)
    run, method = report.run or RunReport(), group.spec.run.method
    incarnation = inputs.decisions.groups.incarnations.get(group.name)
    total = incarnation.world_size if incarnation is not None else 0
    if not run.begun:
        why = Explanation(Reason.RUN_NOT_BEGUN, f"{method} is called on all ranks once they are ready")
    else:
        count = f"{method} has begun on {run.begun} of {total} ranks, and returned on {run.returned}"
        why = Explanation(Reason.RUN_BEGUN, count)
    return (_complete_finding("False", why),)
