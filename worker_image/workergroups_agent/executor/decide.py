"""What to do: a pure function from the plan, Ray's state and the launches to actions.

First goes what has no owner any more; then each pool's placement groups are made on the nodes that are there; then
each group is launched once its bundles are reserved.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from workergroups.naming import PlacementName, RankName
from workergroups_agent.launch_state import (
    Launches,
    RankPlacement,
    kept_placements,
    key_of,
    launch_state,
    nodes_of,
    rank_placements,
)
from workergroups_agent.ray_state import RayState
from workergroups_api.plan import ClusterPlan, PlannedGroup, PlannedPool
from workergroups_api.vocabulary import LaunchState


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
class Announce:
    """Tell drivers which incarnation of a group is the current one."""

    group: str
    uid: str
    incarnation: int


@dataclass(frozen=True)
class AnnouncePool:
    """Tell drivers what is reserved for a pool."""

    pool: str
    uid: str
    nodes: int


@dataclass(frozen=True)
class EndRanks:
    """End ranks that have no owner, from a task on one of these nodes; the first is best."""

    names: tuple[RankName, ...]
    node_ids: tuple[str, ...]


@dataclass(frozen=True)
class LaunchGroup:
    """Create all ranks of a group."""

    group: PlannedGroup
    placements: tuple[RankPlacement, ...]
    vendor: str


Action = RemovePlacement | CreatePlacement | Announce | AnnouncePool | EndRanks | LaunchGroup


def decide(plan: ClusterPlan, state: RayState, launches: Launches) -> list[Action]:
    """Actions for now. New incarnations are announced before the ranks of old ones end."""
    kept = kept_placements(plan, state)
    actions: list[Action] = [RemovePlacement(p.name) for p in state.placements if p.name not in kept.values()]
    actions += [
        Announce(group.name, group.uid, group.incarnation) for group in plan.groups if group.session == state.session
    ]
    actions += _end_ranks(plan, state)
    actions += [AnnouncePool(pool.name, pool.uid, pool.nodes) for pool in plan.reserved_pools]
    for pool in plan.reserved_pools:
        actions += _reserve(pool, state, kept)
    for group in plan.groups:
        actions += _launch(group, plan, state, launches)
    return actions


def _end_ranks(plan: ClusterPlan, state: RayState) -> Iterator[EndRanks]:
    """All at once, where one of them is: to reach a rank is to load its class, so that is done in a pool's pod."""
    owned = {key_of(group) for group in plan.groups}
    ranks = [rank for rank in state.ranks if rank.is_alive and (rank.name.uid, rank.name.incarnation) not in owned]
    nodes = dict.fromkeys(rank.node_id for rank in ranks if rank.node_id in state.nodes)
    # A rank that waits for its place is nowhere; any pod of the cluster will do.
    nodes |= dict.fromkeys(node.id for node in state.nodes.values() if node.node_group is not None)
    if ranks and nodes:
        yield EndRanks(tuple(rank.name for rank in ranks), tuple(nodes))


def _reserve(
    pool: PlannedPool, state: RayState, kept: Mapping[tuple[str, int], PlacementName]
) -> Iterator[CreatePlacement]:
    """Give the pool's nodes that have no placement group a free Ray node each, in the order of the pods' names.

    They wait for each other, so that the order does not depend on who joined first.
    """
    taken = {name.node_id for name in kept.values()}
    free = [node for node in nodes_of(pool, state) if node.id not in taken]
    vacant = [index for index in range(pool.nodes) if (pool.uid, index) not in kept]
    if len(free) < len(vacant):
        return
    for index, node in zip(vacant, free, strict=False):
        name = PlacementName(pool.name, pool.uid, index, node.id)
        yield CreatePlacement(name, (pool.bundle,) * pool.processes_per_node)


def _launch(group: PlannedGroup, plan: ClusterPlan, state: RayState, launches: Launches) -> Iterator[LaunchGroup]:
    """Launch a group that waits for nothing, and of which nothing exists."""
    key = key_of(group)
    if launch_state(group, plan, state, launches).reason != LaunchState.LAUNCHING:
        return
    placements = rank_placements(group, plan, state)
    if placements is None or key in launches.running or key in launches.delayed:
        return
    pool = next(pool for pool in plan.pools if pool.name == group.bundles[0].pool)
    yield LaunchGroup(
        group=group,
        placements=placements,
        vendor=pool.vendor,
    )
