"""Report what is true: a pure function from the plan, Ray's state and the executor's account to the reports."""

from collections.abc import Iterable, Mapping

from workergroups.announcements.runs import RunStep
from workergroups.debugger.pauses import Pause
from workergroups.naming import PlacementName
from workergroups.ray_private.death import Death
from workergroups_agent.exchange import PreparedLaunch, ReportedGroup, ReportedPool, Reports
from workergroups_agent.launch_state import GroupKey, Heard, key_of, observed_launch_state, ranks_of
from workergroups_agent.moments import moment
from workergroups_agent.observer.weights import weights_of
from workergroups_agent.placements import domain_of, kept_placements, leaving_placements, nodes_of
from workergroups_agent.preflight_state import preflight_report
from workergroups_agent.ray_state import JoinedNode, PlacementState, RankActor, RayState
from workergroups_api.conditions import Explanation
from workergroups_api.plan import ClusterPlan, PlannedGroup, PlannedPool
from workergroups_api.report import (
    MAX_DRIVER_JOBS,
    MAX_FAILURES,
    MAX_NODES,
    MAX_PAUSES,
    GroupReport,
    HangReport,
    LastWords,
    NodeReport,
    OldestCall,
    PoolReport,
    RankFailure,
    RankPause,
    RunReport,
    pods_digest,
)
from workergroups_api.vocabulary import NodeState, RankEnd
from workergroups_common.ranges import braces, ranges
from workergroups_common.text import plain

MAX_MESSAGE = 1024


def report(
    plan: ClusterPlan,
    state: RayState,
    prepared: Mapping[str, PreparedLaunch],
    heard: Heard,
    last_words: Mapping[str, tuple[LastWords, ...]],
    hangs: Mapping[GroupKey, HangReport],
    oldest: Mapping[GroupKey, OldestCall],
) -> Reports:
    """Return the reports on all pools and groups.

    Args:
        plan: What should exist.
        state: What Ray has.
        prepared: What the groups are launched from, by UID.
        heard: What the executor reports.
        last_words: What dead ranks printed last, by their group's UID.
        hangs: The calls that hang, by the group's UID and incarnation.
        oldest: The oldest calls of groups, likewise.
    """
    kept, leaving = kept_placements(plan, state), leaving_placements(plan, state)
    told = {group.uid: observed_launch_state(group, plan, state, prepared, heard) for group in plan.groups}
    return Reports(
        session=state.session,
        pools={
            pool.name: ReportedPool(uid=pool.uid, report=_pool(pool, plan, state, kept, leaving, heard))
            for pool in plan.pools
        },
        groups={
            group.name: ReportedGroup(
                uid=group.uid, report=_group(group, state, told[group.uid], last_words, hangs, oldest)
            )
            for group in plan.groups
        },
    )


def _pool(
    pool: PlannedPool,
    plan: ClusterPlan,
    state: RayState,
    kept: Mapping[tuple[str, int], PlacementName],
    leaving: Iterable[PlacementName],
    heard: Heard,
) -> PoolReport:
    placements = {placement.name: placement for placement in state.placements}
    joined = nodes_of(pool, state)
    reserved = []
    others = []
    pods = [] if pool.reserves else [node.pod for node in joined]
    for index in range(pool.nodes if pool.reserves else 0):
        name = kept.get((pool.uid, index))
        placement = placements[name] if name else None
        if placement is not None and placement.state == "CREATED":
            reserved.append(index)
            pods.append(state.nodes[placement.name.node_id].pod)
        else:
            others.append(_node(index, state, placement))
    missing = (_unknown_domains(pool, joined) or heard.silence) if len(joined) >= pool.nodes else None
    return PoolReport(
        session=state.session,
        head=state.head,
        generation=pool.generation,
        planned_nodes=pool.nodes,
        joined_nodes=len(joined),
        joined_pods=pods_digest(node.pod for node in joined),
        reserved_nodes=len(reserved),
        reserved=ranges(reserved),
        pods=braces(pods),
        leaving=ranges(name.index for name in leaving if name.uid == pool.uid),
        nodes=tuple(others[:MAX_NODES]),
        message=next((node.message for node in others if node.message), missing if others else None),
        drivers=len(state.drivers),
        driver_jobs=state.drivers[:MAX_DRIVER_JOBS],
        last_driver_end=None if state.last_driver_end is None else moment(int(state.last_driver_end)),
        preflight=preflight_report(pool, plan, state, heard.silence),
    )


def _unknown_domains(pool: PlannedPool, joined: Iterable[JoinedNode]) -> str | None:
    """Explain that nodes wait for a plan that says where they are; None if none does."""
    unknown = [node.pod for node in joined if domain_of(pool, node) is None]
    if not unknown:
        return None
    count = f"{len(unknown)} of the pods are, such as {unknown[0]}"
    return f"waiting until the operator knows where in the topology {count}"


def _node(index: int, state: RayState, placement: PlacementState | None) -> NodeReport:
    """Report on a node that is not reserved."""
    if placement is None:
        return NodeReport(index=index, state=NodeState.WAITING)
    pod = state.nodes[placement.name.node_id].pod
    short = {
        "INFEASIBLE": "the Ray node has fewer resources than its bundles need",
        "NO_RESOURCES": "other actors or tasks hold the Ray node's resources",
    }.get(placement.scheduling_state)
    message = f"placement group on {pod} is {placement.state}: {short}" if short else None
    return NodeReport(index=index, state=NodeState.RESERVING, pod=pod, message=message)


def _group(
    group: PlannedGroup,
    state: RayState,
    explanation: Explanation,
    last_words: Mapping[str, tuple[LastWords, ...]],
    hangs: Mapping[GroupKey, HangReport],
    oldest: Mapping[GroupKey, OldestCall],
) -> GroupReport:
    ranks = ranks_of(group, state)
    ready = [number for number, rank in ranks.items() if rank.state == "ALIVE"]
    failures = [failure for _, rank in sorted(ranks.items()) if (failure := _failure(rank, state)) is not None]
    paused = _paused(ranks, state)
    return GroupReport(
        session=state.session,
        incarnation=group.incarnation,
        birth=group.last_birth or None,
        state=explanation.reason,
        created=len(ranks),
        ready_count=len(ready),
        ready=ranges(ready),
        message=plain(explanation.message, MAX_MESSAGE) or None,
        failed=ranges(failure.rank for failure in failures),
        failures=tuple(failures[:MAX_FAILURES]),
        last_words=last_words.get(group.uid, ()),
        paused=ranges(paused),
        pauses=tuple(_pause(number, pause, state) for number, pause in list(paused.items())[:MAX_PAUSES]),
        oldest_call=oldest.get(key_of(group)),
        hang=hangs.get(key_of(group)),
        run=_run(ranks, state) if group.run is not None else None,
        weights=weights_of(ranks, state.weights),
    )


def _paused(ranks: Mapping[int, RankActor], state: RayState) -> dict[int, Pause]:
    """Return where ranks wait for a debugger or have one attached, by rank."""
    return {
        number: state.pauses[rank.actor_id]
        for number, rank in sorted(ranks.items())
        if rank.is_alive and rank.actor_id in state.pauses
    }


def _pause(number: int, pause: Pause, state: RayState) -> RankPause:
    return RankPause(
        rank=number,
        pod=state.pods.get(pause.node_id),
        where=plain(pause.where, MAX_MESSAGE),
        since=moment(pause.since),
        attached=pause.is_attached,
    )


def _run(ranks: Mapping[int, RankActor], state: RayState) -> RunReport:
    steps = [state.runs[rank.actor_id].step for rank in ranks.values() if rank.actor_id in state.runs]
    return RunReport(begun=len(steps), returned=steps.count(RunStep.RETURNED))


def _failure(rank: RankActor, state: RayState) -> RankFailure | None:
    """Return why a rank died, or why its run failed; None if neither is so."""
    run = state.runs.get(rank.actor_id)
    if run is not None and run.step is RunStep.RAISED:
        pod = state.pods.get(rank.node_id)
        message = plain(run.message, MAX_MESSAGE)
        name, why = rank.name, RankEnd.RUN_FAILED
        return RankFailure(rank=name.rank, birth=name.birth or None, reason=why, message=message, pod=pod)
    return None if rank.is_alive else failure_of(rank, state)


def failure_of(rank: RankActor, state: RayState) -> RankFailure:
    """Return why a rank died, and where it was."""
    death = rank.death or Death(RankEnd.PROCESS_DIED, "Ray does not say why", "")
    # Ray gives several reasons for a rank on a lost node, finally that its placement group was removed.
    went_with_node = rank.node_id not in state.nodes and death.reason in (RankEnd.PROCESS_DIED, RankEnd.REMOVED)
    return RankFailure(
        rank=rank.name.rank,
        birth=rank.name.birth or None,
        reason=RankEnd.NODE_LOST if went_with_node else death.reason,
        message=plain(death.message, MAX_MESSAGE),
        pod=state.pods.get(rank.node_id),
    )
