"""Where the plan's pools and ranks are in Ray: their nodes, placement groups and bundles. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from workergroups.naming import PlacementName
from workergroups_agent.ray_state import JoinedNode, RayState
from workergroups_api.plan import MAX_POOL_NODES, ClusterPlan, PlannedGroup, PlannedPool


@dataclass(frozen=True)
class RankPlacement:
    """Where a rank runs. `local_rank` counts the group's ranks on the same node."""

    placement: PlacementName
    bundle: int
    local_rank: int
    local_world_size: int
    # The share of one of its bundle's devices that the rank takes in Ray; 0 if there are none.
    num_gpus: float
    # How many devices its bundle has.
    devices: int
    # What Ray calls them; None if there are none.
    device: str | None


def passed_nodes(pool: PlannedPool, state: RayState) -> frozenset[str]:
    """Return the ids of the Ray nodes that have passed what the pool checks."""
    record = state.preflights.get(pool.uid)
    return frozenset() if record is None or pool.preflight is None else record.passed_at(pool.preflight.level)


def nodes_of(pool: PlannedPool, state: RayState) -> list[JoinedNode]:
    """Return the pool's live Ray nodes in the order of their pods' names."""
    nodes = (node for node in state.nodes.values() if node.node_group == pool.node_group)
    return sorted(nodes, key=lambda node: (node.pod, node.id))


def domain_of(pool: PlannedPool, node: JoinedNode) -> str | None:
    """Return the node's domain of the pool's topology, "" if it is in none; None if it is not known yet."""
    return "" if pool.domains is None else pool.domains.get(node.pod)


def kept_placements(plan: ClusterPlan, state: RayState) -> dict[tuple[str, int], PlacementName]:
    """Return the placement groups that have an owner and a live node, by pool UID and index."""
    pools = {pool.uid: pool for pool in plan.reserved_pools}
    return {
        (placement.name.uid, placement.name.index): placement.name
        for placement in state.placements
        if placement.name.uid in pools
        and placement.name.index < pools[placement.name.uid].nodes
        and placement.name.node_id in state.nodes
    }


def leaving_placements(plan: ClusterPlan, state: RayState) -> list[PlacementName]:
    """Return the placement groups on live nodes that a pool is giving up, since it has fewer nodes now.

    A user may have named one after a node that no pool can have had: there is no waiting for that.
    """
    pools = {pool.uid: pool for pool in plan.reserved_pools}
    return [
        placement.name
        for placement in state.placements
        if placement.name.uid in pools
        and pools[placement.name.uid].nodes <= placement.name.index < MAX_POOL_NODES
        and placement.name.node_id in state.nodes
    ]


def ending_nodes(plan: ClusterPlan, state: RayState) -> set[str]:
    """Return the ids of the live nodes whose pods are about to be deleted: their pool gives them back, or is gone.

    What is on them ends with them, as Kubernetes tells the ranks there before it ends a pod.
    """
    if plan.pods_stay:
        return set()
    staying = {None, *(pool.node_group for pool in plan.pools if not pool.gives_back)}
    return {node.id for node in state.nodes.values() if node.node_group not in staying}


def rank_placements(group: PlannedGroup, plan: ClusterPlan, state: RayState) -> tuple[RankPlacement, ...] | None:
    """Return where the group's ranks run, in rank order; None while a bundle is not reserved."""
    created = {placement.name for placement in state.placements if placement.state == "CREATED"}
    kept = kept_placements(plan, state)
    pools = {pool.name: pool for pool in plan.pools}
    found: list[tuple[PlacementName, int, PlannedPool]] = []
    for part in group.bundles:
        pool = pools.get(part.pool)
        if pool is None or part.start + part.count > pool.world_size:
            return None
        for number in range(part.start, part.start + part.count):
            index, bundle = divmod(number, pool.processes_per_node)
            name = kept.get((pool.uid, index))
            if name is None or name not in created:
                return None
            found.append((name, bundle, pool))
    return tuple(_with_local_ranks(found))


def _with_local_ranks(bundles: list[tuple[PlacementName, int, PlannedPool]]) -> Iterator[RankPlacement]:
    on_node: dict[str, int] = {}
    for name, _, _ in bundles:
        on_node[name.node_id] = on_node.get(name.node_id, 0) + 1
    seen: dict[str, int] = {}
    for name, bundle, pool in bundles:
        local_rank = seen.get(name.node_id, 0)
        seen[name.node_id] = local_rank + 1
        share = 1 / pool.max_colocate_count if pool.device else 0.0
        devices = max(1, pool.devices_per_process)
        yield RankPlacement(name, bundle, local_rank, on_node[name.node_id], share, devices, pool.device)
