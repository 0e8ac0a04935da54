"""The executor's loop: observe Ray, decide (pure), act, report (pure). It writes reports only when they changed."""

import logging
import time

from workergroups_agent.exchange import Exchange, PreparedLaunch, Reports
from workergroups_agent.executor.act import Actor
from workergroups_agent.executor.decide import decide
from workergroups_agent.executor.keep_lines import LineKeeper
from workergroups_agent.executor.launch_state import Launches, is_complete
from workergroups_agent.executor.listen import Listener
from workergroups_agent.executor.observe import Observer
from workergroups_agent.executor.pod_tasks import LaunchTasks
from workergroups_agent.executor.ray_state import RayState
from workergroups_agent.executor.report import report
from workergroups_agent.executor.tails import Tails
from workergroups_agent.files import Stamp
from workergroups_api.plan import ClusterPlan

LOGGER = logging.getLogger(__name__)
# How soon a change in Ray is seen: while something is under way, and at rest.
BUSY_SECONDS = 0.1
REST_SECONDS = 0.25
POLL_SECONDS = 0.05


class Orders:
    """Plan and launches as the reporter wrote them; a file is read again when it changed."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._plan: tuple[Stamp | None, ClusterPlan] = None, ClusterPlan(cluster="")
        self._launches: dict[str, tuple[Stamp | None, PreparedLaunch | None]] = {}

    def plan(self) -> ClusterPlan | None:
        """None before there is one. One that cannot be read leaves the one before in force."""
        stamp = self._exchange.plan_stamp()
        if stamp != self._plan[0]:
            try:
                plan = self._exchange.read_plan() or self._plan[1]
            except ValueError as error:
                LOGGER.warning("the plan cannot be read: %s", type(error).__name__)
                plan = self._plan[1]
            self._plan = stamp, plan
        return self._plan[1] if self._plan[1].cluster else None

    def launches(self, uids: list[str]) -> dict[str, PreparedLaunch]:
        """What these groups are launched from, by UID; others are no longer held in memory."""
        self._launches = {uid: self._launch(uid) for uid in uids}
        return {uid: prepared for uid, (_, prepared) in self._launches.items() if prepared is not None}

    def _launch(self, uid: str) -> tuple[Stamp | None, PreparedLaunch | None]:
        stamp = self._exchange.launch_stamp(uid)
        if stamp is None:
            return None, None
        known = self._launches.get(uid)
        if known is not None and known[0] == stamp:
            return known
        try:
            return stamp, self._exchange.read_launch(uid)
        except (ValueError, RecursionError) as error:
            LOGGER.warning("the launch of %s cannot be read: %s", uid, type(error).__name__)
            return stamp, None


class Executor:
    """Carries out the plan in the Ray cluster that this process is connected to."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._orders = Orders(exchange)
        self._observer = Observer()
        self.session = self._observer.session
        self._launches = LaunchTasks()
        self._actor = Actor(self._launches)
        tails = Tails()
        self._keeper = LineKeeper(exchange.last_lines, tails)
        self._listener = Listener(tails, self._keeper.lose_head)
        self._reports = Reports()
        self._written: Reports | None = None
        # What the latest decisions rested on; as long as it is the same, so are they.
        self._seen: tuple[ClusterPlan, RayState, Launches] | None = None

    def run_forever(self) -> None:
        """Look, act and report until Ray cannot be asked any more."""
        self._listener.start()
        try:
            while True:
                busy = self.look()
                self._wait(BUSY_SECONDS if busy else REST_SECONDS)
        finally:
            self._listener.stop()

    def look(self) -> bool:
        """One look at plan and Ray, and what follows from it. Returns whether something is under way.

        Raises:
            SessionEnded: This is not the Ray cluster that this process joined.
        """
        plan = self._orders.plan()
        launching = self._launches.are_running()
        ended = self._launches.ended()
        state = self._observer.look(launching=launching)
        self._keeper.look(state)
        if plan is None:
            self._tell(Reports(session=state.session))
            return False
        self._keeper.forget_but({group.uid for group in plan.groups})
        self._launches.take_note(ended, plan, state)
        prepared = self._orders.launches([group.uid for group in plan.groups if not is_complete(group, state)])
        seen = (plan, state, self._launches.snapshot(prepared))
        if seen == self._seen:
            self._tell(self._reports)
            return False
        under_way = self._carry_out(*seen)
        self._seen = None if under_way else seen
        return under_way

    def _carry_out(self, plan: ClusterPlan, state: RayState, launches: Launches) -> bool:
        actions = decide(plan, state, launches)
        settled = self._actor.act(actions, launches.prepared, state)
        self._actor.forget_but(plan, state)
        launches = self._launches.snapshot(launches.prepared)
        self._tell(report(plan, state, launches))
        return not settled or bool(launches.running)

    def _tell(self, reports: Reports) -> None:
        """Write the reports if they changed, and then that they are true now."""
        self._reports = reports
        try:
            if reports != self._written:
                self._exchange.write_reports(reports)
                self._written = reports
            self._exchange.beat(self._observer.session)
        except OSError as error:
            LOGGER.warning("the reports cannot be written: %s", error)

    def _wait(self, seconds: float) -> None:
        stamp = self._exchange.plan_stamp()
        until = time.monotonic() + seconds
        while time.monotonic() < until and self._exchange.plan_stamp() == stamp:
            time.sleep(POLL_SECONDS)
