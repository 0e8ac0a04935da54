"""What ranks spend their seconds on is among Ray's metrics."""

import time
from collections import Counter

import ray

import workergroups
from tests.ray.agent.planned import Group, launch
from tests.ray.agent.test_executor import all_ready
from workergroups.naming import RankName
from workergroups.processes import usage

CODE = """
import time
import workergroups
from workergroups import Dispatch, register

class Busy(workergroups.Worker):
    @register(Dispatch.ONE_TO_ALL)
    def compute(self, seconds):
        began = time.monotonic()
        time.sleep(seconds)
        return time.monotonic() - began

    def plain(self, seconds):
        began = time.monotonic()
        while time.monotonic() < began + seconds:
            pass
        return time.monotonic() - began
"""


def counted(monkeypatch, group):
    """The seconds of the group's ranks by activity and method, and which ranks count them."""
    monkeypatch.setenv("RAY_ADDRESS", ray.get_runtime_context().gcs_address)
    found, ranks = Counter(), set()
    for row in usage.answer().seconds:
        name = RankName.parse(row.name)
        if name.group == group and row.activity:
            found[row.activity, row.method] += row.seconds
            ranks.add(name.rank)
    return found, ranks


def test_each_second_of_a_rank_is_booked_once(agent, monkeypatch):
    group = Group(code=CODE, launch=launch("accumulator.Busy"))
    agent.until(all_ready, group)
    attached = workergroups.attach(group.name)
    began, spent = time.monotonic(), Counter()
    for _ in range(4):
        spent["Running", "compute"] += sum(attached.compute(1.5))
        spent["Running", "plain"] += sum(attached.execute_all_sync("plain", 0.5))
        time.sleep(1)
    called = time.monotonic() - began
    deadline = time.monotonic() + 60
    found, ranks = counted(monkeypatch, group.name)
    while sum(found.values()) < 2 * (called + 15):  # Ray reports every ten seconds
        assert time.monotonic() < deadline, found
        time.sleep(1)
        found, ranks = counted(monkeypatch, group.name)
    assert ranks == {0, 1}
    for what, seconds in spent.items():
        assert -0.5 < found[what] - seconds < 2.5
    assert found["Idle", ""] > 2 * 4
