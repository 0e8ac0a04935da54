"""Carry out actions in Ray. One that fails is tried again at the next look, and never stops the others."""

import logging
from collections.abc import Iterable, Mapping

from ray.util import get_placement_group, placement_group, remove_placement_group

from workergroups import incarnations
from workergroups_agent.exchange import PreparedLaunch
from workergroups_agent.executor.decide import (
    Action,
    Announce,
    CreatePlacement,
    EndRanks,
    LaunchGroup,
    RemovePlacement,
)
from workergroups_agent.executor.pod_tasks import EndingTasks, LaunchTasks
from workergroups_agent.executor.ray_state import RayState
from workergroups_api.text import plain

LOGGER = logging.getLogger(__name__)
MAX_LOGGED = 300


class Actor:
    """Carries out actions, and remembers what needs no second time."""

    def __init__(self, launches: LaunchTasks) -> None:
        self._launches = launches
        self._endings = EndingTasks()
        # Group -> UID and incarnation.
        self._announced: dict[str, tuple[str, int]] = {}
        self._forgotten: set[str] = set()

    def act(self, actions: Iterable[Action], prepared: Mapping[str, PreparedLaunch], state: RayState) -> bool:
        """Carry out the actions in order. Returns whether there was nothing to do but what had been done before."""
        settled = True
        for action in actions:
            try:
                settled &= not self._act(action, prepared, state)
            except Exception as error:
                settled = False
                # If Ray is gone, the next look says so and ends the process.
                LOGGER.warning("%s failed: %s: %s", type(action).__name__, type(error).__name__, _brief(error))

        return settled

    def forget_groups_but(self, groups: set[str], state: RayState) -> None:
        """Withdraw the announcements of groups that are gone, those of earlier executors included."""
        gone = (self._announced.keys() | {rank.name.group for rank in state.ranks}) - groups - self._forgotten
        for name in gone:
            incarnations.forget(name)
            self._announced.pop(name, None)
        self._forgotten = (self._forgotten | gone) - groups

    def _act(self, action: Action, prepared: Mapping[str, PreparedLaunch], state: RayState) -> bool:
        """Whether something was to be done."""
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
            case Announce(group, uid, incarnation):
                if self._announced.get(group) == (uid, incarnation):
                    return False
                incarnations.announce(group, uid, incarnation)
                self._announced[group] = uid, incarnation
            case EndRanks(names, node_ids):
                if self._endings.end(names, node_ids):
                    LOGGER.info("ending %d ranks without an owner", len(names))
            case LaunchGroup(group):
                LOGGER.info("launching %s/%d: %d ranks", group.name, group.incarnation, group.world_size)
                self._launches.start(action, prepared[group.uid], state)
        return True


def _brief(error: Exception) -> str:
    return plain(str(error), MAX_LOGGED)
