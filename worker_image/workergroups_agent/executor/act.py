"""Carry out actions in Ray. A failed action is retried at the next look, and does not stop the others."""

import logging
from collections.abc import Callable, Iterable, Mapping

from ray.util import get_placement_group, placement_group, remove_placement_group

from workergroups.announcements import held_weights, incarnations, reservations, runs
from workergroups.debugger import announced
from workergroups.single_controller.ray import group_record
from workergroups_agent.exchange import PreparedLaunch
from workergroups_agent.executor.decide import (
    Action,
    Announce,
    AnnouncePool,
    CreatePlacement,
    EndRanks,
    LaunchGroup,
    RemovePlacement,
    RunGroup,
)
from workergroups_agent.executor.pod_tasks import EndingTasks, LaunchTasks, RunTasks
from workergroups_agent.launch_state import is_owned
from workergroups_agent.ray_state import RayState
from workergroups_api.plan import ClusterPlan
from workergroups_common.text import plain

LOGGER = logging.getLogger(__name__)
MAX_LOGGED = 300


class ActionRunner:
    """Carries out actions, and remembers those that need not be repeated."""

    def __init__(self, launches: LaunchTasks) -> None:
        self._launches = launches
        self._endings = EndingTasks()
        self._runs = RunTasks()
        # How many looks in a row had a failed action.
        self.failures = 0
        self._groups = _Announced(incarnations.announce, incarnations.forget)
        self._pools = _Announced(reservations.announce, reservations.forget)
        # First ranks that have ended and were replaced, whose records this process has removed.
        self._without_record: set[str] = set()
        # Dead ranks whose record of their weights this process has removed; it is read only from time to time.
        self._without_weights: set[str] = set()

    def act(self, actions: Iterable[Action], prepared: Mapping[str, PreparedLaunch], state: RayState) -> bool:
        """Carry out the actions in order; return whether all of them had been done before."""
        settled, failed = True, False
        for action in actions:
            try:
                settled &= not self._act(action, prepared, state)
            except Exception as error:
                settled, failed = False, True
                # If Ray is gone, the next look finds out and ends the process.
                LOGGER.warning("%s failed: %s: %s", type(action).__name__, type(error).__name__, _brief(error))
        self.failures = self.failures + 1 if failed else 0
        return settled

    def forget_but(self, plan: ClusterPlan, state: RayState) -> None:
        """Withdraw announcements about groups, pools and ranks that are gone, those of earlier executors included."""
        self._groups.forget_but({group.name for group in plan.groups}, {rank.name.group for rank in state.ranks})
        pools = {pool.name for pool in plan.reserved_pools}
        self._pools.forget_but(pools, {placement.name.pool for placement in state.placements})
        for rank in state.ranks:
            if not rank.is_alive and rank.actor_id in state.pauses:
                announced.withdraw(rank.actor_id)
        self._forget_records(plan, state)
        self._forget_runs(plan, state)
        self._forget_weights(state)

    def _forget_records(self, plan: ClusterPlan, state: RayState) -> None:
        """Remove what first ranks published that were replaced: no driver attaches to those."""
        current = {group.uid: group for group in plan.groups}
        ended = {
            rank.actor_id
            for rank in state.ranks
            if rank.name.rank == 0 and not rank.is_alive and not is_owned(rank.name, current)
        }
        for actor_id in ended - self._without_record:
            group_record.forget(actor_id)
        self._without_record = ended

    def _forget_runs(self, plan: ClusterPlan, state: RayState) -> None:
        """Remove what the ranks of ended incarnations have recorded of their runs."""
        current = {(group.uid, group.incarnation) for group in plan.groups if group.bundles}
        for rank in state.ranks:
            is_current = (rank.name.uid, rank.name.incarnation) in current
            if not rank.is_alive and not is_current and rank.actor_id in state.runs:
                runs.forget(rank.actor_id)

    def _forget_weights(self, state: RayState) -> None:
        """Remove what dead ranks have recorded of their weights."""
        ended = {rank.actor_id for rank in state.ranks if not rank.is_alive} & state.weights.now.keys()
        for actor_id in ended - self._without_weights:
            held_weights.forget(actor_id)
        self._without_weights = ended

    def _act(self, action: Action, prepared: Mapping[str, PreparedLaunch], state: RayState) -> bool:
        """Carry out one action; return whether it had not been done before."""
        match action:
            case RemovePlacement(name):
                LOGGER.info("removing placement group %s", name)
                remove_placement_group(get_placement_group(str(name)))
            case CreatePlacement(name, bundles):
                LOGGER.info("creating placement group %s of %d bundles", name, len(bundles))
                placement_group(
                    [dict(bundle) for bundle in bundles],
                    strategy="STRICT_PACK",
                    name=str(name),
                    lifetime="detached",
                    bundle_label_selector=[{"ray.io/node-id": name.node_id}] * len(bundles),
                )
            case Announce(group, uid, incarnation, is_final, births, cause):
                return self._groups.announce(group, uid, incarnation, is_final, births, cause)
            case AnnouncePool(pool, uid, nodes):
                return self._pools.announce(pool, uid, nodes)
            case EndRanks(names, node_ids, seconds):
                if count := self._endings.end(names, node_ids, seconds):
                    LOGGER.info("ending %d ranks without an owner, which have %d s to answer", count, seconds)
            case LaunchGroup(group):
                LOGGER.info("launching %s/%d: %d ranks", group.name, group.incarnation, len(action.used))
                self._launches.start(action, prepared[group.uid], state)
            case RunGroup():
                self._runs.start(action, prepared[action.group.uid])
        return True


class _Announced:
    """The announcements about groups, or about pools, that this process has made and withdrawn."""

    def __init__(self, announce: Callable[..., None], forget: Callable[[str], None]) -> None:
        self._announce = announce
        self._forget = forget
        self._announced: dict[str, tuple[object, ...]] = {}
        self._forgotten: set[str] = set()

    def announce(self, name: str, *facts: object) -> bool:
        """Announce it unless this process has; return whether it had not."""
        if self._announced.get(name) == facts:
            return False
        self._announce(name, *facts)
        self._announced[name] = facts
        return True

    def forget_but(self, names: set[str], seen: set[str]) -> None:
        """Withdraw all announcements but these. Earlier executors may have announced the names in `seen`."""
        gone = (self._announced.keys() | seen) - names - self._forgotten
        for name in gone:
            self._forget(name)
            self._announced.pop(name, None)
        self._forgotten = (self._forgotten | gone) - names


def _brief(error: Exception) -> str:
    return plain(str(error), MAX_LOGGED)
