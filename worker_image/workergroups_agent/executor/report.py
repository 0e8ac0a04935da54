"""What is true: a pure function from the plan, Ray's state and the launches to the reports."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from workergroups_agent.executor.decide import keep, nodes_of, ranks_of, seats_of
from workergroups_agent.executor.placement_name import PlacementName
from workergroups_agent.executor.ray_state import Death, Placement, Rank, RayState
from workergroups_api.plan import ClusterPlan, PlannedGroup, PlannedPool, Reports
from workergroups_api.report import GroupReport, NodeReport, PoolReport, RankFailure, ranges

MAX_FAILURES = 10
MAX_MESSAGE = 1024


class Trouble(NamedTuple):
    """Why a group is not launched: a failure, or something that it waits for."""

    state: Literal["LaunchFailed", "WaitingForCode"]
    message: str


def report(plan: ClusterPlan, state: RayState, troubles: Mapping[tuple[str, int], Trouble]) -> Reports:
    """Reports on all pools and groups. `troubles` are of groups by UID and incarnation."""
    placed = keep(plan, state)
    pools = {pool.name: _with_uid(pool.uid, _pool(pool, state, placed)) for pool in plan.pools}
    groups = {
        group.name: _with_uid(group.uid, _group(group, plan, state, troubles.get((group.uid, group.incarnation))))
        for group in plan.groups
    }
    return Reports(pools=pools, groups=groups)


def _with_uid(uid: str, value: PoolReport | GroupReport) -> dict[str, Any]:
    return {"uid": uid, "report": value.to_json()}


def _pool(pool: PlannedPool, state: RayState, placed: Mapping[tuple[str, int], PlacementName]) -> PoolReport:
    placements = {placement.name: placement for placement in state.placements}
    nodes = []
    reserved = 0
    for index, planned in enumerate(pool.nodes):
        name = placed.get((pool.uid, index))
        nodes.append(_node(index, state, placements[name] if name else None))
        if nodes[-1].state == "Reserved":
            reserved += planned.processes
    return PoolReport(
        observed_generation=pool.generation,
        joined_nodes=min(len(nodes_of(pool, state)), len(pool.nodes)),
        reserved_bundles=reserved,
        total_bundles=sum(node.processes for node in pool.nodes),
        message=next((node.message for node in nodes if node.message), None),
        nodes=tuple(nodes),
    )


def _node(index: int, state: RayState, placement: Placement | None) -> NodeReport:
    if placement is None:
        return NodeReport(index=index, state="Waiting")
    pod = state.nodes[placement.name.node_id].host
    if placement.state == "CREATED":
        return NodeReport(index=index, state="Reserved", pod=pod)
    short = {
        "INFEASIBLE": "the Ray node has fewer resources than its bundles need",
        "NO_RESOURCES": "others hold the Ray node's resources",
    }.get(placement.scheduling_state)
    message = f"placement group on {pod} is {placement.state}: {short}" if short else None
    return NodeReport(index=index, state="Reserving", pod=pod, message=message)


def _group(group: PlannedGroup, plan: ClusterPlan, state: RayState, trouble: Trouble | None) -> GroupReport:
    ranks = ranks_of(group, state)
    ready = [number for number, rank in ranks.items() if rank.state == "ALIVE"]
    failures = [_failure(rank, state) for _, rank in sorted(ranks.items()) if not rank.is_alive]
    return GroupReport(
        observed_generation=group.generation,
        incarnation=group.incarnation,
        state=_launch_state(group, plan, state, trouble),
        total=group.world_size,
        created=len(ranks),
        ready_count=len(ready),
        ready=ranges(ready),
        message=trouble.message if trouble else None,
        failures=tuple(failures[:MAX_FAILURES]),
    )


def _launch_state(
    group: PlannedGroup, plan: ClusterPlan, state: RayState, trouble: Trouble | None
) -> Literal["WaitingForPools", "WaitingForCode", "Launching", "Launched", "LaunchFailed"]:
    ranks = ranks_of(group, state)
    if len(ranks) == group.world_size:
        return "Launched"
    if trouble:
        return trouble.state
    if not ranks and seats_of(group, plan, state) is None:
        return "WaitingForPools"
    return "Launching"


def _failure(rank: Rank, state: RayState) -> RankFailure:
    death = rank.death or Death("ProcessDied", "Ray does not say why")
    # Of a node that goes, Ray says many things, the last of them that the placement group was removed.
    went_with_node = rank.node_id not in state.nodes and death.reason in ("ProcessDied", "Removed")
    return RankFailure(
        rank=rank.name.rank,
        reason="NodeLost" if went_with_node else death.reason,
        message=death.message[:MAX_MESSAGE],
        pod=state.hosts.get(rank.node_id),
    )
