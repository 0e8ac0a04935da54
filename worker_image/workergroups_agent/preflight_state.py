"""Which nodes of a pool must be checked now, and how far the check is: pure functions for decisions and reports."""

from collections.abc import Mapping

from workergroups_agent.placements import kept_placements, nodes_of, passed_nodes
from workergroups_agent.preflight_records import PreflightRecord
from workergroups_agent.ray_state import JoinedNode, RayState
from workergroups_api.plan import ClusterPlan, PlannedPool
from workergroups_api.report import PreflightReport
from workergroups_api.vocabulary import PreflightState
from workergroups_common.ranges import ranges

NOT_BEGUN = "waiting for the executor to begin"


def held_nodes(pool: PlannedPool, plan: ClusterPlan, state: RayState) -> dict[int, JoinedNode]:
    """Return the nodes that have their bundles, by number; if the pool reserves nothing, those that have joined Ray."""
    if not pool.reserves:
        return dict(enumerate(nodes_of(pool, state)))
    created = {placement.name for placement in state.placements if placement.state == "CREATED"}
    kept = kept_placements(plan, state)
    named = {index: kept.get((pool.uid, index)) for index in range(pool.nodes)}
    return {index: state.nodes[name.node_id] for index, name in named.items() if name in created and name is not None}


def nodes_to_ask(pool: PlannedPool, held: Mapping[int, JoinedNode], state: RayState) -> list[JoinedNode]:
    """Return the nodes that have not passed, in their order.

    There are none until all nodes have their bundles, so that all are compared with each other. As for reserving,
    nodes that had their bundles before do not wait for those that the pool grows by.
    """
    is_whole = any(held.keys() >= set(range(count)) for count in (pool.nodes, pool.settled) if count)
    passed = passed_nodes(pool, state)
    return [node for _, node in sorted(held.items()) if node.id not in passed] if is_whole else []


def is_about(record: PreflightRecord | None, pool: PlannedPool, nodes: list[JoinedNode]) -> bool:
    """Return whether the record is of a check of exactly these nodes, for the present spec."""
    if record is None or pool.preflight is None:
        return False
    asked = {node.id for node in nodes}
    return (record.level, record.generation, set(record.asked)) == (pool.preflight.level, pool.generation, asked)


def preflight_report(
    pool: PlannedPool, plan: ClusterPlan, state: RayState, silence: str | None
) -> PreflightReport | None:
    """Return how far the check of the pool is; None if nothing is checked. `silence` is why no executor answers."""
    if pool.preflight is None:
        return None
    held = held_nodes(pool, plan, state)
    passed = passed_nodes(pool, state)
    well = [index for index, node in held.items() if node.id in passed]
    progress, message = _progress(pool, held, len(well), state, silence)
    return PreflightReport(
        level=pool.preflight.level,
        state=progress,
        passed=ranges(well) if pool.reserves else "",
        message=message or None,
    )


def _progress(
    pool: PlannedPool, held: Mapping[int, JoinedNode], well: int, state: RayState, silence: str | None
) -> tuple[PreflightState, str]:
    record = state.preflights.get(pool.uid)
    if record is not None and well == len(held) >= pool.nodes:
        return PreflightState.PASSED, record.message if record.state is PreflightState.PASSED else ""
    asked = nodes_to_ask(pool, held, state)
    if not asked:
        return PreflightState.WAITING, "waiting until all nodes have joined Ray and have their bundles"
    if record is not None and is_about(record, pool, asked):
        if record.state is PreflightState.FAILED:
            return PreflightState.FAILED, record.message
        if record.state is PreflightState.CHECKING:
            return PreflightState.CHECKING, silence or record.message
    return PreflightState.WAITING, silence or NOT_BEGUN
