"""The part of step four that is about groups: bundles, variables, and which incarnation is the next. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from workergroups_api import launch
from workergroups_api.conditions import Explanation
from workergroups_api.manifest import SECRET
from workergroups_api.names import group_env_name
from workergroups_api.plan import MAX_RANKS, PlannedBundles
from workergroups_api.report import GroupReport
from workergroups_api.run import RunStatus
from workergroups_api.vocabulary import Resize
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.observed import Observed
from workergroups_operator.policy.agent_liveness import AgentLiveness
from workergroups_operator.policy.believed_report import group_report
from workergroups_operator.policy.bundles import Assignment, Blocked, assign_bundles
from workergroups_operator.policy.current_bundles import CurrentBundles
from workergroups_operator.policy.group_env import PresentEnv, env_digest, with_room_in_secret
from workergroups_operator.policy.incarnation import (
    FIRST,
    GroupIncarnation,
    LaunchOutcome,
    after_finish,
    begins_anyway,
    finished,
    last_incarnation,
    launch_outcome,
    next_incarnation,
    suspended_incarnation,
)
from workergroups_operator.policy.plan_size import within_budget
from workergroups_operator.policy.pool_size import PoolCapacity
from workergroups_operator.policy.rank_failures import (
    NO_BIRTHS,
    NO_RESTARTS,
    FailureResponse,
    failure_response,
    group_failure,
    present_report,
)
from workergroups_operator.policy.run import how_it_ended, present_run, started
from workergroups_operator.policy.suspension import by_priority, suspended_groups
from workergroups_operator.policy.token import present_token
from workergroups_operator.templates import Templates


@dataclass(frozen=True)
class GroupDecisions:
    """What was decided about the groups, by their names."""

    bundles: Mapping[str, Assignment]
    # Why it has no ranks; without groups that should have some.
    suspended: Mapping[str, Explanation]
    # What it takes from Secrets and ConfigMaps now, or why it cannot; without groups that take nothing.
    environments: Mapping[str, PresentEnv | Explanation] = field(repr=False)
    incarnations: Mapping[str, GroupIncarnation]
    # What the agent reports of the present incarnation, as far as it counts.
    reports: Mapping[str, GroupReport]
    # What failed of its last incarnation, and what follows. The present one is another if the ranks are restarted now.
    failures: Mapping[str, FailureResponse]
    # How the runs of groups have ended.
    finished: Mapping[str, Explanation]


def decide_groups(
    observed: Observed,
    templates: Templates,
    agent: AgentLiveness,
    capacities: Mapping[str, PoolCapacity],
    suspended_pools: Mapping[str, Explanation],
) -> GroupDecisions:
    """Decide about all groups, given how much room each pool has, and which pools are suspended."""
    recorded = {group.name: last_incarnation(group.status, observed.planned(group.uid)) for group in observed.groups}
    runs = {group.name: _run(group, recorded[group.name], observed, agent) for group in observed.groups}
    ended = _ended(observed, recorded, runs)
    last = {name: each if name in ended else after_finish(each) for name, each in recorded.items()}
    current = {
        group.name: _held(group, last[group.name], observed, templates, agent.session) for group in observed.groups
    }
    assigned = assign_bundles(
        by_priority(observed), observed.pools, observed.pools_elsewhere, capacities, current, ended
    )
    policies = {group.name: group.spec.failure_policy for group in observed.groups}
    bundles = within_budget(assigned, policies, [name for name, run in runs.items() if run is not None])
    suspended = suspended_groups(observed.groups, bundles, suspended_pools)
    environments = _environments(observed)
    found = {
        group.name: _incarnation(
            group,
            last[group.name],
            environments.get(group.name),
            assignment.bundles,
            observed,
            templates,
            agent,
            runs[group.name],
            is_suspended=group.name in suspended,
        )
        for group in observed.groups
        if not isinstance(assignment := bundles[group.name], Blocked)
    }
    incarnations = {name: incarnation for name, (incarnation, _) in found.items()}
    return GroupDecisions(
        bundles=bundles,
        suspended=suspended,
        environments=environments,
        incarnations=incarnations,
        reports={
            group.name: _present_report(group, incarnations.get(group.name), observed, agent)
            for group in observed.groups
        },
        failures={name: response for name, (_, response) in found.items() if response is not None},
        finished=ended,
    )


def _run(
    group: WorkerGroup, last: GroupIncarnation | None, observed: Observed, agent: AgentLiveness
) -> RunStatus | None:
    """Return the run of the group's present spec; None if it has none."""
    if group.spec.run is None:
        return None
    report = _report(group, last, observed, agent)
    returned = report.run.returned if report is not None and report.run is not None else 0
    has_returned = last is not None and 0 < last.world_size == returned
    return present_run(group.spec, last, observed.run_revisions[group.name], observed.at, has_returned=has_returned)


def _ended(
    observed: Observed, last: Mapping[str, GroupIncarnation | None], runs: Mapping[str, RunStatus | None]
) -> dict[str, Explanation]:
    """Return how runs have ended, by the group's name."""
    found: dict[str, Explanation] = {}
    for group in observed.groups:
        incarnation = last[group.name]
        number = incarnation.number if incarnation is not None else FIRST
        why = how_it_ended(group.spec, runs[group.name], number)
        found |= {group.name: why} if why is not None else {}
    return found


def _environments(observed: Observed) -> dict[str, PresentEnv | Explanation]:
    """Return the environments of groups. While there is no token yet, there is none of a group either."""
    live = observed.child(SECRET, group_env_name(observed.key.name)) or {}
    present = with_room_in_secret(observed.environments, live.get("data") or {})
    token, uids = present_token(observed), {group.name: group.uid for group in observed.groups}
    found: dict[str, PresentEnv | Explanation] = {}
    for name, each in present.items():
        if isinstance(each, Explanation):
            found[name] = each
        elif token is not None and name in uids:
            found[name] = PresentEnv(env_digest(uids[name], each, token), each)
    return found


def _held(
    group: WorkerGroup,
    last: GroupIncarnation | None,
    observed: Observed,
    templates: Templates,
    session: str | None,
) -> CurrentBundles:
    """Return the bundles that the group has, and whether it may get others now."""
    # One in no session has no ranks.
    if last is None or last.session is None:
        return CurrentBundles()
    launched = launch_outcome(last, group.status.ranks, last.world_size)
    begins = begins_anyway(last, _revision(group, last.bundles, observed, templates), session)
    # Other bundles are another revision, and so another incarnation, only if both revisions are known.
    is_known = None not in (last.revision, observed.launch_revisions[group.name])
    may_grow = is_known and (group.spec.resize is Resize.FOLLOW or begins)
    return CurrentBundles(
        last.bundles,
        is_new=last.number == FIRST and launched is LaunchOutcome.UNKNOWN,
        may_grow=may_grow,
        may_shrink=may_grow or (is_known and launched is LaunchOutcome.UNKNOWN),
    )


def _revision(
    group: WorkerGroup, bundles: Sequence[PlannedBundles], observed: Observed, templates: Templates
) -> str | None:
    """Return a digest of what ranks on these bundles are made from; None while the code is not known."""
    pools = {pool.name: pool for pool in observed.pools}
    on = [pools.get(part.pool) for part in bundles]
    places = [[pool and pool.uid, part.start, part.count] for pool, part in zip(on, bundles, strict=True)]
    rolls = [pool and templates.roll(pool) for pool in on]
    written = observed.launch_revisions[group.name]
    made_from = [written, places, rolls] if any(rolls) else [written, places]
    return None if written is None else launch.digest(made_from)


def _incarnation(
    group: WorkerGroup,
    last: GroupIncarnation | None,
    environment: PresentEnv | Explanation | None,
    assigned: tuple[PlannedBundles, ...],
    observed: Observed,
    templates: Templates,
    agent: AgentLiveness,
    run: RunStatus | None,
    *,
    is_suspended: bool,
) -> tuple[GroupIncarnation, FailureResponse | None]:
    """Return the next incarnation on the assigned bundles, and the response to what failed of the last one."""
    known = environment.digest if isinstance(environment, PresentEnv) else None
    if last is not None and run is not None and run.reason is not None:
        return finished(last, run), None
    if is_suspended:
        return replace(suspended_incarnation(last, known), bundles=assigned), None
    revision = _revision(group, assigned, observed, templates)
    launched = launch_outcome(last, group.status.ranks, sum(part.count for part in assigned))
    response = _response(group, last, observed, agent)
    following = next_incarnation(last, revision, agent.session, known, launched, response, observed.at)
    return replace(following, bundles=assigned, run=started(run, following.session, observed.at)), response


def _response(
    group: WorkerGroup, last: GroupIncarnation | None, observed: Observed, agent: AgentLiveness
) -> FailureResponse | None:
    """Return what follows from what failed of the last incarnation, if the agent vouches for its report on it."""
    report = _report(group, last, observed, agent)
    if report is None:
        return None
    births, world_size = (NO_BIRTHS, MAX_RANKS) if last is None else (last.births, last.world_size)
    present, policy = present_report(report, births, world_size), group.spec.failure_policy
    pods = (*observed.evicted_pods, *observed.pods)
    failure = group_failure(present, pods, policy.restart, births, group.status.failures)
    history = NO_RESTARTS if last is None else last.restarts
    return None if failure is None else failure_response(failure, policy, history, observed.at, births, world_size)


def _report(
    group: WorkerGroup, incarnation: GroupIncarnation | None, observed: Observed, agent: AgentLiveness
) -> GroupReport | None:
    """Return the agent's report on an incarnation, which counts."""
    return group_report(group, FIRST if incarnation is None else incarnation.number, observed, agent)


def _present_report(
    group: WorkerGroup, incarnation: GroupIncarnation | None, observed: Observed, agent: AgentLiveness
) -> GroupReport:
    """Return what the report says of the ranks that there should be now; an empty one if it says nothing."""
    if incarnation is None or (report := _report(group, incarnation, observed, agent)) is None:
        return GroupReport()
    return present_report(report, incarnation.births, incarnation.world_size)
