"""The observer's loop: forward orders, look at Ray, report (pure). Reports are written only when they have changed."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import NoReturn

from workergroups.ray_private.calls_in_flight import CallReader
from workergroups.ray_private.gcs import Gcs
from workergroups_agent.account import AccountReader
from workergroups_agent.exchange import Exchange, PreparedLaunch, Reports
from workergroups_agent.hang_records import HangRecords
from workergroups_agent.launch_state import GroupKey, Heard, needs_launch
from workergroups_agent.observer.forward import Forwarder
from workergroups_agent.observer.hangs import HangWatch
from workergroups_agent.observer.keep_previous_logs import PreviousLogKeeper
from workergroups_agent.observer.printed_lines import Listener, Tails
from workergroups_agent.observer.report import report
from workergroups_agent.observer.returned_head import ReturnedHead
from workergroups_agent.observer.silent_ends import MemoryKills, ToldEnds
from workergroups_agent.patience import Patience
from workergroups_agent.ray_state import RayState
from workergroups_agent.read_ray import RayReader
from workergroups_api.plan import ClusterPlan
from workergroups_api.report import HangReport, LastWords, OldestCall

LOGGER = logging.getLogger(__name__)
# How often to look at Ray: while something is in progress, and at rest.
BUSY_SECONDS = 0.1
REST_SECONDS = 0.25
POLL_SECONDS = 0.05
# A GCS that does not answer for this long may be gone for good: the observer then looks for another one.
LOST_SECONDS = 10.0

_Seen = tuple[
    ClusterPlan,
    RayState,
    dict[str, PreparedLaunch],
    Heard,
    Mapping[str, tuple[LastWords, ...]],
    Mapping[GroupKey, HangReport],
    Mapping[GroupKey, OldestCall],
]


class Observer:
    """Reports what one GCS holds."""

    def __init__(self, gcs: Gcs, exchange: Exchange) -> None:
        self.session = gcs.session
        self._exchange = exchange
        self._orders = Forwarder(gcs, exchange)
        self._executor = AccountReader(gcs)
        self._reader = RayReader(gcs)
        self._told_ends = ToldEnds(gcs)
        self._memory_kills = MemoryKills(gcs)
        self._hangs = HangWatch(HangRecords(gcs), CallReader(gcs.address))
        tails = Tails()
        self._keeper = PreviousLogKeeper(exchange.previous_logs, tails)
        self._listener = Listener(gcs.address, tails, self._keeper.lose_head)
        self._returned = ReturnedHead()
        self._reports = Reports()
        self._written: Reports | None = None
        # The input of the latest reports: the same input needs no new ones.
        self._seen: _Seen | None = None

    def run_forever(self, is_alive: Callable[[], object]) -> NoReturn:
        """Look and report until the GCS is gone; call `is_alive` before each look, also after failed ones.

        Raises:
            SessionEnded: Another GCS answers, or none.
        """
        LOGGER.info("observing session %s", self.session)
        self._listener.start()
        try:
            patience = Patience(LOST_SECONDS)
            while True:
                is_alive()
                with patience:
                    self._wait(BUSY_SECONDS if self.look() else REST_SECONDS)
        finally:
            self._listener.stop()

    def look(self) -> bool:
        """Look once, and report; return whether something is in progress.

        Raises:
            SessionEnded: Another GCS answers.
        """
        plan = self._orders.plan()
        heard = self._executor.look()
        heard = heard.about(plan) if plan else heard
        checked = plan.checked_pools if plan else ()
        state = self._told_ends.explained(self._reader.look(launching=heard.is_launching, checked=checked))
        state = self._memory_kills.explained(state)
        if not self._returned.knows_its_ranks(state):
            return True
        self._keeper.look(state)
        if plan is None:
            self._tell(Reports(session=state.session))
            return False
        self._keeper.forget_but({group.uid for group in plan.groups})
        wanted = [group.uid for group in plan.groups if needs_launch(group, state)]
        prepared = dict(self._orders.forward(plan, wanted, self._executor.orders))
        hangs = self._hangs.look(plan, state)
        seen = (plan, state, prepared, heard, self._keeper.last_words(), hangs, self._hangs.oldest)
        changed = seen != self._seen
        self._tell(report(*seen) if changed else self._reports)
        self._seen = seen
        return changed or heard.is_launching

    def _tell(self, reports: Reports) -> None:
        """Write the reports if they have changed, and then the heartbeat that vouches for them."""
        self._reports = reports
        try:
            if reports != self._written:
                self._exchange.write_reports(reports)
                self._written = reports
            self._exchange.beat(self.session)
        except OSError as error:
            LOGGER.warning("the reports cannot be written: %s", error)

    def _wait(self, seconds: float) -> None:
        stamp = self._exchange.plan_stamp()
        until = time.monotonic() + seconds
        while time.monotonic() < until and self._exchange.plan_stamp() == stamp:
            time.sleep(POLL_SECONDS)
