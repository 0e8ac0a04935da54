"""How far the launch of a group is: pure functions that decisions and reports use."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from workergroups.naming import RankName
from workergroups_agent.exchange import PreparedLaunch
from workergroups_agent.placements import RankPlacement, passed_nodes, rank_placements
from workergroups_agent.ray_state import RankActor, RayState
from workergroups_api.conditions import Explanation
from workergroups_api.plan import ClusterPlan, PlannedGroup
from workergroups_api.vocabulary import ENDED_LAUNCHES, LaunchState, RankEnd

# A group's UID and incarnation.
GroupKey = tuple[str, int]
# UID, incarnation and birth of the ranks that one task creates: those of an incarnation, or some of it again.
LaunchKey = tuple[str, int, int]

LAUNCHED = Explanation(LaunchState.LAUNCHED, "")
LAUNCHING = Explanation(LaunchState.LAUNCHING, "")


@dataclass(frozen=True)
class Launches:
    """What is known of launches, apart from Ray's actors."""

    # What groups are launched from, by UID.
    prepared: Mapping[str, PreparedLaunch] = field(default_factory=dict)
    # A task of this executor runs; the value says what it waits for, if it does.
    running: Mapping[GroupKey, str | None] = field(default_factory=dict)
    # Why the launch could not begin; it is retried.
    delayed: Mapping[GroupKey, Explanation] = field(default_factory=dict)
    # Why the launch failed, as its task reported.
    failed: Mapping[GroupKey, Explanation] = field(default_factory=dict)
    # What is known of launches whose process died.
    died: Mapping[GroupKey, Explanation] = field(default_factory=dict)
    # Tasks that began to create ranks, and whose end is unknown.
    begun: frozenset[GroupKey] = frozenset()


def key_of(group: PlannedGroup) -> GroupKey:
    """Return what identifies one incarnation of one group."""
    return group.uid, group.incarnation


def owns(group: PlannedGroup, name: RankName) -> bool:
    """Return whether a rank of this name belongs to the group as planned: it was not replaced, alone or with others."""
    return (name.uid, name.incarnation) == key_of(group) and name.birth >= group.birth_of(name.rank)


def is_owned(name: RankName, groups: Mapping[str, PlannedGroup]) -> bool:
    """Return whether a rank of this name belongs to one of these groups, which are given by UID."""
    return name.uid in groups and owns(groups[name.uid], name)


def ranks_of(group: PlannedGroup, state: RayState) -> dict[int, RankActor]:
    """Return the group's ranks of this incarnation, dead ones included, by rank: of each rank the latest birth."""
    ranks = (rank for rank in state.ranks if owns(group, rank.name) and rank.name.world_size == group.world_size)
    return {rank.name.rank: rank for rank in sorted(ranks, key=lambda rank: rank.name.birth)}


def is_complete(group: PlannedGroup, state: RayState) -> bool:
    """Return whether every rank of this incarnation was created, dead ones included."""
    return len(ranks_of(group, state)) == group.world_size


def notified_ranks(plan: ClusterPlan, state: RayState) -> frozenset[RankName]:
    """Return the ranks that end after notice: those of whole incarnations without a failure, or that have it now."""
    groups = {group.uid: group for group in plan.groups}
    sets: dict[str, set[RankName]] = {}
    for rank in state.ranks:
        if rank.state == "ALIVE":
            sets.setdefault(rank.name.incarnation_key, set()).add(rank.name)
    ending = (names for key, names in sets.items() if _gets_notice(names, groups, has_notice=key in state.noticed))
    return frozenset().union(*ending)


def _gets_notice(names: Collection[RankName], groups: Mapping[str, PlannedGroup], *, has_notice: bool) -> bool:
    first = next(iter(names))
    group = groups.get(first.uid)
    if group is not None and first.incarnation >= group.incarnation:
        return False
    is_whole = {name.rank for name in names} == set(range(first.world_size))
    return has_notice or (is_whole and (group is None or group.cause is None))


def awaited_ranks(
    group: PlannedGroup, placements: Sequence[RankPlacement], plan: ClusterPlan, state: RayState
) -> set[RankName]:
    """Return the ranks with notice that must end before a group is launched.

    Those are its own earlier ones, and ranks of others on its nodes that do not belong there any more. Only its own if
    it heals: then it was there before.
    """
    notified = notified_ranks(plan, state)
    if not notified:
        return set()
    own = {name for name in notified if name.group == group.name}
    if group.cause is not None:
        return own
    nodes = {each.placement.node_id for each in placements}
    planned = {each.uid: _nodes(each, plan, state) for each in plan.groups}
    others = (rank for rank in state.ranks if rank.name in notified and rank.node_id in nodes)
    return own | {rank.name for rank in others if rank.node_id not in planned.get(rank.name.uid, ())}


def _nodes(group: PlannedGroup, plan: ClusterPlan, state: RayState) -> set[str]:
    return {each.placement.node_id for each in rank_placements(group, plan, state) or ()}


def needs_launch(group: PlannedGroup, state: RayState) -> bool:
    """Return whether the executor needs what the group is launched from: ranks are missing, or calls of its run."""
    return not is_complete(group, state) or (group.run is not None and not has_begun(group, state))


def is_ready(group: PlannedGroup, state: RayState) -> bool:
    """Return whether all ranks of this incarnation are ready."""
    ranks = ranks_of(group, state)
    return 0 < group.world_size == sum(rank.state == "ALIVE" for rank in ranks.values())


def has_begun(group: PlannedGroup, state: RayState) -> bool:
    """Return whether the method that the group runs has been called on all ranks of this incarnation."""
    return all(rank.actor_id in state.runs for rank in ranks_of(group, state).values())


def missing_ranks(group: PlannedGroup, state: RayState) -> dict[int, tuple[int, ...]]:
    """Return the ranks that must be created, by the birth that they get: 0 with the incarnation."""
    present = ranks_of(group, state)
    missing = defaultdict(list)
    for rank in range(group.world_size):
        if rank not in present:
            missing[group.birth_of(rank)].append(rank)
    return {birth: tuple(ranks) for birth, ranks in missing.items()}


def next_birth(missing: Mapping[int, tuple[int, ...]]) -> int:
    """Return which ranks are created first: all of an incarnation, then rank 0, whose address the others need."""
    return min(missing, key=lambda birth: (birth > 0, 0 not in missing[birth], birth))


def launch_state(group: PlannedGroup, plan: ClusterPlan, state: RayState, launches: Launches) -> Explanation:
    """Return how far the executor is with a group, with a message if there is one.

    `Launching` without a running task means that the group should be launched.
    """
    key = key_of(group)
    ranks = ranks_of(group, state)
    if ended := _launched_or_interrupted(group, ranks):
        return ended
    if key in launches.running:
        return Explanation(LaunchState.LAUNCHING, launches.running[key] or "")
    if key in launches.failed:
        return launches.failed[key]
    if ranks and 0 in missing_ranks(group, state):
        return _interrupted(f"the launch was cut short when {len(ranks)} of {group.world_size} ranks were created")
    if key in launches.died:
        return launches.died[key]
    if key in launches.begun:
        return _interrupted("the launch was cut short while ranks were created")
    return _waits_for(group, plan, state, launches.prepared) or launches.delayed.get(key, LAUNCHING)


def launches_to_tell(plan: ClusterPlan, state: RayState, launches: Launches) -> dict[GroupKey, Explanation]:
    """Return what only the executor knows: the launches that run, and those that did not succeed."""
    told = {key_of(group): launch_state(group, plan, state, launches) for group in plan.groups}
    return {
        key: why
        for key, why in told.items()
        if why.reason in ENDED_LAUNCHES
        or (why.reason == LaunchState.LAUNCHING and (key in launches.running or why.message))
    }


@dataclass(frozen=True)
class Heard:
    """What the executor has told the observer."""

    # See `launches_to_tell`.
    launches: Mapping[GroupKey, Explanation] = field(default_factory=dict)
    # Why the executor does not answer; None while it does.
    silence: str | None = None

    def about(self, plan: ClusterPlan) -> "Heard":
        """Return what concerns the groups of the plan: users can write about others into the GCS."""
        planned = {key_of(group) for group in plan.groups}
        return replace(self, launches={key: why for key, why in self.launches.items() if key in planned})

    @property
    def is_launching(self) -> bool:
        """Whether ranks may appear at any time."""
        return any(why.reason == LaunchState.LAUNCHING for why in self.launches.values())


def observed_launch_state(
    group: PlannedGroup, plan: ClusterPlan, state: RayState, prepared: Mapping[str, PreparedLaunch], heard: Heard
) -> Explanation:
    """Return how far a group is, from Ray's records and what the executor reports.

    The executor's report may be older or newer than Ray's records. So only the executor, which knows whether the launch
    still runs, can report that a launch was cut short.
    """
    if not group.bundles:
        return _suspended(group, state)
    ranks = ranks_of(group, state)
    if ended := _launched_or_interrupted(group, ranks):
        return ended
    told = heard.launches.get(key_of(group))
    if told is not None and told.reason in ENDED_LAUNCHES:
        return told
    is_begun = ranks and 0 in missing_ranks(group, state)
    waits = None if is_begun or told else _waits_for(group, plan, state, prepared)
    if waits is not None:
        return waits
    return Explanation(LaunchState.LAUNCHING, heard.silence) if heard.silence else told or LAUNCHING


def _launched_or_interrupted(group: PlannedGroup, ranks: Mapping[int, RankActor]) -> Explanation | None:
    if any(rank.death is not None and rank.death.reason == RankEnd.OWNER_DIED for rank in ranks.values()):
        # Until Ray has everything that a detached actor is created from, the actor ends with its creator's process.
        return _interrupted("the launching task's process ended while ranks were created")
    return LAUNCHED if 0 < len(ranks) == group.world_size else None


def _suspended(group: PlannedGroup, state: RayState) -> Explanation:
    """Return whether ranks of earlier incarnations still run."""
    left = [rank for rank in state.ranks if rank.name.uid == group.uid and rank.is_alive]
    if left:
        return Explanation(LaunchState.SUSPENDING, f"{len(left)} ranks of earlier incarnations have not ended yet")
    return Explanation(LaunchState.SUSPENDED, "")


def _interrupted(message: str) -> Explanation:
    return Explanation(LaunchState.LAUNCH_INTERRUPTED, message)


def _waits_for(
    group: PlannedGroup, plan: ClusterPlan, state: RayState, prepared: Mapping[str, PreparedLaunch]
) -> Explanation | None:
    """Return what a launch that has not begun waits for; None if it waits for nothing."""
    if group.session != state.session:
        again = "Ray was started again, and what ran on it has ended: " if group.session else ""
        message = f"{again}waiting for the operator to plan the ranks for this start of Ray"
        return Explanation(LaunchState.WAITING_FOR_POOLS, message)
    found = prepared.get(group.uid)
    if found is None:
        return Explanation(LaunchState.WAITING_FOR_CODE, "waiting for the agent's reporter to read the WorkerGroup")
    if found.missing is not None:
        return found.missing
    if found.revision is None or found.revision != group.launch_revision:
        return Explanation(
            LaunchState.WAITING_FOR_CODE,
            "the WorkerGroup or its code has changed: waiting for the operator's plan for it",
        )
    placements = rank_placements(group, plan, state)
    if placements is None:
        return Explanation(LaunchState.WAITING_FOR_POOLS, "")
    if earlier := awaited_ranks(group, placements, plan, state):
        message = f"waiting for {len(earlier)} earlier ranks, which have been told, and end when they have answered"
        return Explanation(LaunchState.WAITING_FOR_RANKS, message)
    return _waits_for_preflight(placements, plan, state)


def _waits_for_preflight(placements: Iterable[RankPlacement], plan: ClusterPlan, state: RayState) -> Explanation | None:
    """Return which pool's nodes have not passed their check; None if there is no such node among the group's."""
    nodes = {(each.placement.uid, each.placement.node_id) for each in placements}
    for pool in plan.pools:
        mine = {node_id for uid, node_id in nodes if uid == pool.uid}
        if pool.preflight is not None and mine - passed_nodes(pool, state):
            message = f"pool {pool.name} has not passed its preflight: see the pool's condition PreflightPassed"
            return Explanation(LaunchState.WAITING_FOR_POOLS, message)
    return None
