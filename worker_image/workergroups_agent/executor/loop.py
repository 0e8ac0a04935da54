"""The executor's loop: observe, decide (pure), act, report (pure). It writes reports only when they changed."""

import time

import ray

from workergroups_agent.exchange import POLL_SECONDS, Exchange
from workergroups_agent.executor.act import PodTasks, act, code_digest
from workergroups_agent.executor.decide import decide
from workergroups_agent.executor.ray_state import observe
from workergroups_agent.executor.report import report
from workergroups_api.plan import ClusterPlan, Orders, Reports

# How soon a change in Ray is seen: while something is under way, and at rest.
BUSY_SECONDS = 0.2
REST_SECONDS = 1.0
# Groups that are not launched until their orders change.
HELD = ("LaunchFailed", "WaitingForCode")


class Executor:
    """Carries out orders in the Ray cluster that this process is connected to."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._tasks = PodTasks()
        self._reported: Reports | None = None
        self._own_node = ray.get_runtime_context().get_node_id()

    def run_forever(self) -> None:
        """Look, act and report until Ray cannot be asked any more."""
        while True:
            stamp = self._exchange.orders_stamp()
            orders = self._exchange.read_orders()
            busy = self.step(orders) if orders else self._report(Reports())
            self._wait(stamp, BUSY_SECONDS if busy else REST_SECONDS)

    def step(self, orders: Orders) -> bool:
        """One look. Returns whether something is under way."""
        plan = orders.plan
        self._tasks.collect(_codes(orders))
        state = observe()
        if self._own_node not in state.nodes:
            raise RuntimeError("the agent's own Ray node is dead: joining anew")
        actions = decide(plan, state, self._tasks.keys)
        act(actions, orders, self._tasks)
        self._report(report(plan, state, self._tasks.troubles))
        return bool(actions) or not _is_at_rest(plan, self._reported)

    def _report(self, reports: Reports) -> bool:
        if reports != self._reported:
            self._exchange.write_reports(reports)
            self._reported = reports
        return False

    def _wait(self, stamp: int, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until and self._exchange.orders_stamp() == stamp:
            time.sleep(POLL_SECONDS)


def _codes(orders: Orders) -> dict[tuple[str, int], str | None]:
    return {
        (group.uid, group.incarnation): code_digest(orders.code.get(group.config_map)) if group.config_map else None
        for group in orders.plan.groups
    }


def _is_at_rest(plan: ClusterPlan, reports: Reports | None) -> bool:
    """Whether every pool is reserved and every rank is ready or dead."""
    if reports is None:
        return False
    pools = [entry["report"] for entry in reports.pools.values()]
    groups = [entry["report"] for entry in reports.groups.values()]
    return all(pool["reservedBundles"] == pool["totalBundles"] for pool in pools) and all(
        group["state"] in HELD or group["readyCount"] + len(group["failures"]) >= group["total"] for group in groups
    )
