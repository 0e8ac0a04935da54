"""Decide what to do: a pure function from the plan, Ray's state and the launches to actions.

First, what no longer has an owner is removed. Then each pool's placement groups are created on the existing nodes. Then
each group whose bundles are reserved is launched.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from workergroups.naming import PlacementName, RankName
from workergroups_agent.launch_state import (
    LAUNCHING,
    Launches,
    LaunchKey,
    has_begun,
    is_owned,
    is_ready,
    key_of,
    launch_state,
    missing_ranks,
    next_birth,
    notified_ranks,
    ranks_of,
)
from workergroups_agent.placements import (
    RankPlacement,
    domain_of,
    ending_nodes,
    kept_placements,
    leaving_placements,
    nodes_of,
    rank_placements,
)
from workergroups_agent.ray_state import JoinedNode, RankActor, RayState
from workergroups_api.plan import ClusterPlan, PlannedGroup, PlannedPool


@dataclass(frozen=True)
class RemovePlacement:
    """Release the bundles; Ray ends the ranks in them."""

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
    # Whether its ranks have failed, and the operator does not recreate them.
    is_final: bool = False
    # The births of ranks that are recreated alone.
    births: Mapping[int, int] | None = None
    # Which rank failed and how, if the latest ranks were created after a failure.
    cause: str | None = None


@dataclass(frozen=True)
class AnnouncePool:
    """Tell drivers what is reserved for a pool."""

    pool: str
    uid: str
    nodes: int


@dataclass(frozen=True)
class EndRanks:
    """End ranks that have no owner, from a task on one of these nodes, preferably the first."""

    names: tuple[RankName, ...]
    node_ids: tuple[str, ...]
    # How long they may take to answer that they have been told; 0 if they are not told.
    seconds: int = 0


@dataclass(frozen=True)
class Rebirth:
    """Ranks that are created alone, while others of their incarnation live."""

    number: int
    ranks: tuple[int, ...]
    # The id of rank 0's actor; None if it is one of them.
    rank_zero: str | None


@dataclass(frozen=True)
class LaunchGroup:
    """Create all ranks of a group, or some."""

    group: PlannedGroup
    # Of all ranks.
    placements: tuple[RankPlacement, ...]
    vendor: str
    # None for all ranks.
    rebirth: Rebirth | None = None

    @property
    def key(self) -> LaunchKey:
        """What tells this launch from all others."""
        return (*key_of(self.group), self.rebirth.number if self.rebirth else 0)

    @property
    def used(self) -> tuple[RankPlacement, ...]:
        """Where the ranks are created."""
        return tuple(self.placements[rank] for rank in self.rebirth.ranks) if self.rebirth else self.placements


@dataclass(frozen=True)
class RunGroup:
    """Call the method that a group runs on all of its ranks, from a task on this node."""

    group: PlannedGroup
    ranks: tuple[RankName, ...]
    node_id: str


Action = RemovePlacement | CreatePlacement | Announce | AnnouncePool | EndRanks | LaunchGroup | RunGroup


def decide(plan: ClusterPlan, state: RayState, launches: Launches) -> list[Action]:
    """Return the actions for now. A new incarnation is announced before the ranks of the old one end."""
    kept = kept_placements(plan, state)
    occupied, ending = _occupied(plan, state), ending_nodes(plan, state)
    staying = {*kept.values(), *occupied, *(p.name for p in state.placements if p.name.node_id in ending)}
    actions: list[Action] = [RemovePlacement(p.name) for p in state.placements if p.name not in staying]
    actions += [
        Announce(group.name, group.uid, group.incarnation, bool(group.is_final), group.births, group.cause)
        for group in plan.groups
        # One without a session is suspended, and so is newer than any that has run.
        if group.session in (None, state.session)
    ]
    actions += _end_ranks(plan, state, ending)
    # A pool that grows offers its new nodes when all of them have their bundles.
    actions += [AnnouncePool(pool.name, pool.uid, pool.settled or pool.nodes) for pool in plan.reserved_pools]
    for pool in plan.reserved_pools:
        actions += _reserve(pool, state, kept, {name.node_id for name in occupied})
    for group in plan.groups:
        actions += _launch(group, plan, state, launches)
        actions += _run(group, state, launches)
    return actions


def _occupied(plan: ClusterPlan, state: RayState) -> set[PlacementName]:
    """Return the placement groups that a shrinking pool gives up when the ranks on their nodes have ended.

    Those are ranks of groups that run elsewhere now, or are deleted: they end as any ranks without an owner do.
    """
    nodes = {rank.node_id for rank in state.ranks if rank.is_alive}
    return {name for name in leaving_placements(plan, state) if name.node_id in nodes}


def _end_ranks(plan: ClusterPlan, state: RayState, ending: Collection[str]) -> Iterator[EndRanks]:
    """End all ranks at once, in a pool's pod: a process that reaches a rank loads its class, which is user code."""
    # A group whose run has ended keeps its incarnation, and has no bundles.
    groups = {group.uid: group for group in plan.groups if group.bundles}
    ranks = [rank for rank in state.ranks if rank.is_alive and not is_owned(rank.name, groups)]
    ranks = [rank for rank in ranks if rank.node_id not in ending]
    nodes = dict.fromkeys(rank.node_id for rank in ranks if rank.node_id in state.nodes)
    # A rank that waits for its bundle is on no node; any pod of the cluster will do.
    nodes |= dict.fromkeys(node.id for node in state.nodes.values() if node.node_group is not None)
    if not ranks or not nodes:
        return
    told = notified_ranks(plan, state)
    # An incarnation may be on several pools: it ends as a whole.
    seconds_of: dict[str, int] = {}
    for rank in ranks:
        key, seconds = rank.name.incarnation_key, _notice_seconds(rank, plan, state) if rank.name in told else 0
        seconds_of[key] = min(seconds, seconds_of.get(key, seconds))
    by_seconds: dict[int, list[RankName]] = {}
    for rank in ranks:
        by_seconds.setdefault(seconds_of[rank.name.incarnation_key], []).append(rank.name)
    for seconds, names in sorted(by_seconds.items()):
        yield EndRanks(tuple(names), tuple(nodes), seconds)


def _notice_seconds(rank: RankActor, plan: ClusterPlan, state: RayState) -> int:
    node = state.nodes.get(rank.node_id)
    known = (pool.notice_seconds for pool in plan.pools if node is not None and pool.node_group == node.node_group)
    return next(known, 0)


def _reserve(
    pool: PlannedPool, state: RayState, kept: Mapping[tuple[str, int], PlacementName], occupied: Collection[str]
) -> Iterator[CreatePlacement]:
    """Create the pool's missing placement groups on its free Ray nodes, along its topology.

    Nothing is created until there is a node for each, so that the order does not depend on which node joined first. But
    nodes that had their bundles before do not wait for those that the pool grows by.
    """
    taken = {name.node_id for name in kept.values()}.union(occupied)
    free = [node for node in _along_topology(pool, state, kept) if node.id not in taken]
    vacant = [index for index in range(pool.nodes) if (pool.uid, index) not in kept]
    settled = [index for index in vacant if index < pool.settled]
    count = next((n for n in (len(vacant), len(settled)) if n <= len(free)), 0)
    for index, node in zip(vacant[:count], free, strict=False):
        name = PlacementName(pool.name, pool.uid, index, node.id)
        yield CreatePlacement(name, (pool.bundle,) * pool.processes_per_node)


def _along_topology(
    pool: PlannedPool, state: RayState, kept: Mapping[tuple[str, int], PlacementName]
) -> list[JoinedNode]:
    """Return the nodes whose domains are known: those of one domain are adjacent, in the order of their pods' names.

    First come the domains in which nodes have their bundles already, in the order of these: so a node that replaces
    another one in its domain gets its number. Nodes that are in no domain come last.
    """
    first: dict[str | None, int] = {}
    for (uid, index), name in sorted(kept.items()):
        if uid == pool.uid:
            first.setdefault(domain_of(pool, state.nodes[name.node_id]), index)
    known = [(domain, node) for node in nodes_of(pool, state) if (domain := domain_of(pool, node)) is not None]
    known.sort(key=lambda found: (first.get(found[0], pool.nodes), not found[0], found[0]))
    return [node for _, node in known]


def _launch(group: PlannedGroup, plan: ClusterPlan, state: RayState, launches: Launches) -> Iterator[LaunchGroup]:
    """Launch a group that waits for nothing, and lacks ranks."""
    key = key_of(group)
    # With a message, it waits for its next try.
    if launch_state(group, plan, state, launches) != LAUNCHING:
        return
    placements = rank_placements(group, plan, state)
    if placements is None or key in launches.running:
        return
    pool = next(pool for pool in plan.pools if pool.name == group.bundles[0].pool)
    yield LaunchGroup(
        group=group,
        placements=placements,
        vendor=pool.vendor,
        rebirth=_rebirth(group, state),
    )


def _rebirth(group: PlannedGroup, state: RayState) -> Rebirth | None:
    missing = missing_ranks(group, state)
    birth = next_birth(missing)
    first = ranks_of(group, state).get(0)
    return Rebirth(birth, missing[birth], first.actor_id if first else None) if birth else None


def _run(group: PlannedGroup, state: RayState, launches: Launches) -> Iterator[RunGroup]:
    """Call the group's method once all ranks are ready. Ranks on which it has begun ignore a second call."""
    prepared = launches.prepared.get(group.uid)
    if group.run is None or prepared is None or prepared.revision is None or prepared.revision != group.launch_revision:
        return
    if not is_ready(group, state) or has_begun(group, state):
        return
    ranks = [rank for _, rank in sorted(ranks_of(group, state).items())]
    yield RunGroup(group, tuple(rank.name for rank in ranks), ranks[0].node_id)
