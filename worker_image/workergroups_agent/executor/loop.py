"""The executor's loop: read orders, observe Ray, decide (pure), act, report."""

import time
from collections.abc import Callable

import ray

from workergroups.ray_private.gcs import Gcs
from workergroups_agent.account import AccountWriter
from workergroups_agent.executor.act import ActionRunner
from workergroups_agent.executor.decide import decide
from workergroups_agent.executor.pod_tasks import LaunchTasks
from workergroups_agent.executor.preflight_tasks import PreflightTasks
from workergroups_agent.executor.stack_tasks import StackTasks
from workergroups_agent.hang_records import HangRecords
from workergroups_agent.launch_state import Launches, launches_to_tell, needs_launch
from workergroups_agent.orders import OrderReader
from workergroups_agent.patience import Patience
from workergroups_agent.ray_state import RayState
from workergroups_agent.read_ray import RayReader
from workergroups_api.plan import ClusterPlan
from workergroups_common.backoff import Backoff

# How often to look at Ray: while something is in progress, and at rest.
BUSY_SECONDS = 0.1
REST_SECONDS = 0.5
# The longest pause before a failed action is retried.
RETRY_SECONDS = 5.0
# How often to look for new orders.
POLL_SECONDS = 0.1
# The executor ends if the GCS does not answer for this long.
LOST_SECONDS = 30.0


class Executor:
    """Carries out the orders in the Ray cluster to which this process, a driver, is connected."""

    def __init__(self) -> None:
        gcs = Gcs.of_driver()
        self.session = gcs.session
        self._orders = OrderReader(gcs)
        self._reader = RayReader(gcs, own_node=ray.get_runtime_context().get_node_id())
        self._launches = LaunchTasks()
        self._runner = ActionRunner(self._launches)
        self._stacks = StackTasks(HangRecords(gcs))
        self._preflights = PreflightTasks(gcs)
        self._account = AccountWriter(gcs)
        # The input of the latest decisions: the same input needs no new ones.
        self._seen: tuple[ClusterPlan, RayState, Launches] | None = None

    def run_forever(self, beat: Callable[[], object]) -> None:
        """Look and act until Ray no longer answers; call `beat` after each look, failed ones included.

        Raises:
            SessionEnded: Ray is gone.
        """
        patience = Patience(LOST_SECONDS)
        while True:
            with patience:
                self._wait(self._seconds_to_next_look() if self.look() else REST_SECONDS)
            beat()

    def look(self) -> bool:
        """Look at orders and Ray once, and act; return whether something is in progress.

        Raises:
            SessionEnded: This is not the Ray cluster that this process joined.
        """
        plan = self._orders.plan()
        launching = self._launches.are_running()
        # Before Ray's state, so that it is not older.
        ended = self._launches.ended()
        state = self._reader.look(launching=launching, checked=plan.checked_pools if plan else ())
        if plan is None:
            self._account.tell({}, None)
            return False
        self._launches.take_note(ended, plan, state)
        self._stacks.look(plan, state)
        self._preflights.look(plan, state)
        prepared = self._orders.launches(group for group in plan.groups if needs_launch(group, state))
        seen = (plan, state, self._launches.snapshot(prepared))
        under_way = seen != self._seen and self._carry_out(*seen)
        self._seen = None if under_way else seen
        self._account.tell(launches_to_tell(plan, state, self._launches.snapshot(prepared)), self._orders.stamp)
        return under_way

    def _carry_out(self, plan: ClusterPlan, state: RayState, launches: Launches) -> bool:
        actions = decide(plan, state, launches)
        settled = self._runner.act(actions, launches.prepared, state)
        self._runner.forget_but(plan, state)
        return not settled or self._launches.are_running()

    def _seconds_to_next_look(self) -> float:
        """Return how soon to look again: later after each failure in a row."""
        return Backoff(BUSY_SECONDS, RETRY_SECONDS).after(1 + self._runner.failures)

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self._orders.has_news():
            time.sleep(POLL_SECONDS)
