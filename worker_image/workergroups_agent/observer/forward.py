"""Forward orders from the exchange, where the reporter writes them, to the GCS, where the executor reads them."""

import logging
import time
from collections.abc import Callable, Collection, Mapping

from workergroups.ray_private.gcs import Gcs
from workergroups_agent.exchange import Exchange, PreparedLaunch
from workergroups_agent.files import Stamp, UnreadableFile
from workergroups_agent.orders import OrderSender
from workergroups_api.conditions import Explanation
from workergroups_api.plan import ClusterPlan
from workergroups_api.vocabulary import LaunchState

LOGGER = logging.getLogger(__name__)
# Orders that the executor has not read after this time are sent again: a user may have removed them.
REPEAT_SECONDS = 2.0


class Forwarder:
    """Forwards orders. It holds the plan, and of launches only what reports need, since the rest may be large."""

    def __init__(self, gcs: Gcs, exchange: Exchange, clock: Callable[[], float] = time.monotonic) -> None:
        self._exchange = exchange
        self._sender = OrderSender(gcs)
        self._clock = clock
        self._plan: tuple[Stamp | None, ClusterPlan | None] = None, None
        self._launches: dict[str, tuple[Stamp | None, PreparedLaunch | None]] = {}
        # What the latest orders were made from, their stamp, and when they were sent.
        self._sent: tuple[object, str, float] | None = None

    def plan(self) -> ClusterPlan | None:
        """Return the plan, None before there is one. If a new plan cannot be read, the previous one stays in force."""
        stamp = self._exchange.plan_stamp()
        if stamp != self._plan[0]:
            try:
                plan = self._exchange.read_plan() or self._plan[1]
            except UnreadableFile as error:
                LOGGER.warning("%s", error)
                plan = self._plan[1]
            self._plan = stamp, plan
        return self._plan[1]

    def forward(self, plan: ClusterPlan, wanted: Collection[str], taken: str | None) -> Mapping[str, PreparedLaunch]:
        """Send what has changed, and what the executor has not read.

        Args:
            plan: What should exist.
            wanted: The UIDs of the groups that are not launched yet.
            taken: The stamp of the orders that the executor carries out.

        Returns:
            What the wanted groups are launched from, by UID; without the launch itself.
        """
        lost = self._sent is not None and taken != self._sent[1] and self._clock() - self._sent[2] > REPEAT_SECONDS
        self._launches = {uid: self._launch(uid, again=lost) for uid in wanted}
        stamps = {uid: stamp for uid, (stamp, _) in self._launches.items()}
        if lost or self._sent is None or self._sent[0] != (plan, stamps):
            self._sender.remove_launches_but(wanted)
            self._sent = (plan, stamps), self._sender.send_plan(plan), self._clock()
        return {uid: prepared for uid, (_, prepared) in self._launches.items() if prepared is not None}

    def _launch(self, uid: str, *, again: bool) -> tuple[Stamp | None, PreparedLaunch | None]:
        stamp = self._exchange.launch_stamp(uid)
        if stamp is None:
            return None, None
        known = self._launches.get(uid)
        if known is not None and known[0] == stamp and not again:
            return known
        try:
            prepared = self._exchange.read_launch(uid)
        except UnreadableFile as error:
            LOGGER.warning("%s", error)
            return stamp, PreparedLaunch(uid=uid, missing=Explanation(LaunchState.WAITING_FOR_CODE, str(error)))
        if prepared is not None and prepared.launch is not None:
            self._sender.send_launch(prepared)
            prepared = prepared.model_copy(update={"launch": None, "files": None})
        return stamp, prepared
