"""What to do: a pure function from the plan and Ray's state to actions.

First goes what has no owner any more; then each pool's placement groups are made on the nodes that are there; then
each group is launched once its seats are reserved.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from workergroups.naming import RankName
from workergroups_agent.executor.placement_name import PlacementName
from workergroups_agent.executor.ray_state import Rank, RayNode, RayState
from workergroups_api.plan import ClusterPlan, PlannedGroup, PlannedPool


@dataclass(frozen=True)
class RemovePlacement:
    """Give the bundles back; Ray ends what runs in them."""

    name: PlacementName


@dataclass(frozen=True)
class CreatePlacement:
    """Reserve a node's bundles."""

    name: PlacementName
    bundles: tuple[Mapping[str, float], ...]


@dataclass(frozen=True)
class EndRanks:
    """End ranks that have no owner, or whose group was not launched whole, from a task on this node."""

    names: tuple[RankName, ...]
    node_id: str


@dataclass(frozen=True)
class Seat:
    """Where a rank sits. `local_rank` counts the group's ranks on the same node."""

    placement: PlacementName
    bundle: int
    local_rank: int
    local_world_size: int


@dataclass(frozen=True)
class Launch:
    """Create all ranks of a group."""

    group: PlannedGroup
    seats: tuple[Seat, ...]
    # A rank's share of its bundle's devices.
    num_gpus: float
    vendor: str


Action = RemovePlacement | CreatePlacement | EndRanks | Launch


def decide(plan: ClusterPlan, state: RayState, launched: frozenset[tuple[str, int]]) -> list[Action]:
    """Actions for now. `launched` are the groups, by UID and incarnation, whose launch runs or has failed."""
    pools = {pool.uid: pool for pool in plan.pools}
    placed = keep(plan, state)
    actions: list[Action] = [RemovePlacement(p.name) for p in state.placements if p.name not in placed.values()]
    actions += _end([rank for rank in state.ranks if rank.is_alive and not _is_owned(rank, plan)], state)
    for pool in pools.values():
        actions += _reserve(pool, state, placed)
    for group in plan.groups:
        if (group.uid, group.incarnation) not in launched:
            actions += _launch(group, plan, state)
    return actions


def keep(plan: ClusterPlan, state: RayState) -> dict[tuple[str, int], PlacementName]:
    """The placement groups that have an owner and a live node, by pool UID and index."""
    sizes = {pool.uid: len(pool.nodes) for pool in plan.pools}
    return {
        (placement.name.uid, placement.name.index): placement.name
        for placement in state.placements
        if placement.name.index < sizes.get(placement.name.uid, 0) and placement.name.node_id in state.nodes
    }


def ranks_of(group: PlannedGroup, state: RayState) -> dict[int, Rank]:
    """The group's ranks of this incarnation, dead ones included."""
    return {
        rank.name.rank: rank
        for rank in state.ranks
        if (rank.name.uid, rank.name.incarnation) == (group.uid, group.incarnation)
    }


def _is_owned(rank: Rank, plan: ClusterPlan) -> bool:
    return any((rank.name.uid, rank.name.incarnation) == (group.uid, group.incarnation) for group in plan.groups)


def _end(ranks: list[Rank], state: RayState) -> Iterator[EndRanks]:
    """All at once, where one of them is: to reach a rank is to load its class, so that is done in a pool's pod."""
    places = [rank.node_id for rank in ranks if rank.node_id in state.nodes]
    # A rank that waits for its place is nowhere; any pod but the agent's own, which has no node group, will do.
    places += [node.id for node in state.nodes.values() if node.node_group is not None]
    if ranks and places:
        yield EndRanks(tuple(rank.name for rank in ranks), places[0])


def _reserve(
    pool: PlannedPool, state: RayState, placed: Mapping[tuple[str, int], PlacementName]
) -> Iterator[CreatePlacement]:
    """Give the entries without a placement group free nodes of their size, in the order of the nodes' pods' names.

    Entries of one size wait for each other, so that the order does not depend on who joined first.
    """
    taken = {name.node_id for name in placed.values()}
    free = [node for node in nodes_of(pool, state) if node.id not in taken]
    vacant: dict[str, list[int]] = {}
    for index, planned in enumerate(pool.nodes):
        if (pool.uid, index) not in placed:
            vacant.setdefault(planned.node_group, []).append(index)
    for node_group, indexes in vacant.items():
        candidates = [node for node in free if node.node_group == node_group]
        if len(candidates) >= len(indexes):
            for index, node in zip(indexes, candidates, strict=False):
                name = PlacementName(pool.name, pool.uid, index, node.id)
                yield CreatePlacement(name, (pool.bundle,) * pool.nodes[index].processes)


def nodes_of(pool: PlannedPool, state: RayState) -> list[RayNode]:
    """The pool's live Ray nodes by the names of their pods."""
    groups = {planned.node_group for planned in pool.nodes}
    return sorted((node for node in state.nodes.values() if node.node_group in groups), key=lambda node: node.host)


def _launch(group: PlannedGroup, plan: ClusterPlan, state: RayState) -> Iterator[Action]:
    """Launch a group of which nothing exists; take away what a launch that was cut short left behind."""
    ranks = ranks_of(group, state)
    if len(ranks) == group.world_size:
        return
    remains = [rank for rank in ranks.values() if rank.is_alive]
    if remains:
        yield from _end(remains, state)
        return
    seats = seats_of(group, plan, state)
    if seats is not None:
        pool = next(pool for pool in plan.pools if pool.name == group.seats[0].pool)
        share = pool.bundle.get("GPU", 0.0) / pool.max_colocate_count
        yield Launch(group, seats, share, pool.vendor)


def seats_of(group: PlannedGroup, plan: ClusterPlan, state: RayState) -> tuple[Seat, ...] | None:
    """The group's seats in rank order, None while one of them is not reserved."""
    created = {placement.name for placement in state.placements if placement.state == "CREATED"}
    placed = keep(plan, state)
    pools = {pool.name: pool for pool in plan.pools}
    bundles: list[tuple[PlacementName, int]] = []
    for part in group.seats:
        pool = pools[part.pool]
        all_bundles = [
            (placed.get((pool.uid, index)), bundle)
            for index, node in enumerate(pool.nodes)
            for bundle in range(node.processes)
        ]
        for name, bundle in all_bundles[part.start : part.start + part.count]:
            if name is None or name not in created:
                return None
            bundles.append((name, bundle))
    return tuple(_with_local_ranks(bundles))


def _with_local_ranks(bundles: list[tuple[PlacementName, int]]) -> Iterator[Seat]:
    on_node: dict[str, int] = {}
    for name, _ in bundles:
        on_node[name.node_id] = on_node.get(name.node_id, 0) + 1
    seen: dict[str, int] = {}
    for name, bundle in bundles:
        local_rank = seen.get(name.node_id, 0)
        seen[name.node_id] = local_rank + 1
        yield Seat(name, bundle, local_rank, on_node[name.node_id])
