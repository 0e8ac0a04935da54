"""An executor whose looks the test takes itself, and builders of what it is told to do."""

import itertools
import time
from collections.abc import Callable
from pathlib import Path

from workergroups_agent.exchange import Exchange
from workergroups_agent.executor.loop import Executor
from workergroups_api.plan import ClusterPlan, Orders, PlannedGroup, PlannedNode, PlannedPool, PlannedSeats

NODE_GROUP = "actors-x2"
# Each group is an object of its own: Ray remembers the ranks of those before it.
UIDS = itertools.count()


class Agent:
    """An executor whose looks the test takes itself."""

    def __init__(self, directory: Path) -> None:
        self.exchange = Exchange(directory)
        self.executor = Executor(self.exchange)

    def until(self, orders: Orders, is_so: Callable[[dict], bool], seconds: float = 60):
        """Look until the reports say what is expected; returns them."""
        deadline = time.monotonic() + seconds
        while True:
            self.executor.step(orders)
            reports = self.exchange.read_reports().to_json()
            if is_so(reports):
                return reports
            assert time.monotonic() < deadline, f"still: {reports}"
            time.sleep(0.1)


def pool(name: str = "actors", nodes: int = 2, uid: str | None = None) -> PlannedPool:
    return PlannedPool(
        name=name,
        uid=uid or f"uid-{name}",
        generation=1,
        vendor="nvidia",
        nodes=(PlannedNode(node_group=NODE_GROUP, processes=2),) * nodes,
        bundle={"CPU": 10.0, "GPU": 1.0},
        max_colocate_count=10,
    )


def group(name: str = "trainer", count: int = 4, **more) -> PlannedGroup:
    defaults = {
        "name": name,
        "uid": f"uid-{next(UIDS)}",
        "generation": 1,
        "incarnation": 1,
        "seats": (PlannedSeats(pool="actors", start=0, count=count),),
        "class_path": "accumulator.Accumulator",
        "config_map": "code",
    }
    return PlannedGroup(**(defaults | more))


ACCUMULATOR = """
import os
import workergroups

class Accumulator(workergroups.Worker):
    def __init__(self, start=0, fail_on=None):
        super().__init__()
        if self.rank == fail_on:
            raise ValueError(f"rank {self.rank} was told to fail")
        self.value = start + self.rank

    def add(self, x):
        self.value += x
        return self.value

    def environment(self, name):
        return os.environ.get(name)

    def pid(self):
        return os.getpid()
"""


def orders(*groups: PlannedGroup, pools=None, code=ACCUMULATOR) -> Orders:
    plan = ClusterPlan(cluster="actors", pools=(pool(),) if pools is None else pools, groups=groups)
    return Orders(plan=plan, code={} if code is None else {"code": {"accumulator.py": code}})
