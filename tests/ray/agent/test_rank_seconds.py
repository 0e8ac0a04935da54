"""What ranks spend their seconds on is among Ray's metrics."""

import re
import time
import urllib.request
from collections import Counter

import ray

import workergroups
from tests.ray.agent.planned import Group, launch
from tests.ray.agent.test_executor import all_ready

SERIES = re.compile(r"ray_workergroups_rank_seconds_total{(.*)} ([\d.e+-]+)")
CODE = """
import time
import workergroups
from workergroups import Dispatch, register

class Busy(workergroups.Worker):
    @register(Dispatch.ONE_TO_ALL)
    def compute(self, seconds):
        time.sleep(seconds)

    def plain(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pass
"""


def scraped(group):
    """The seconds of the group's ranks by activity and method, from all nodes of the Ray cluster."""
    found = Counter()
    for node in ray.nodes():
        url = f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics"
        with urllib.request.urlopen(url, timeout=5) as page:
            for labels, value in SERIES.findall(page.read().decode()):
                tags = dict(re.findall(r'(\w+)="(.*?)"', labels))
                if tags["group"] == group:
                    found[tags["activity"], tags["method"]] += float(value)
    return found


def test_each_second_of_a_rank_is_booked_once(agent):
    group = Group(code=CODE, launch=launch("accumulator.Busy"))
    agent.until(all_ready, group)
    attached = workergroups.attach(group.name)
    began = time.monotonic()
    for _ in range(4):
        attached.compute(1.5)
        attached.execute_all_sync("plain", 0.5)
        time.sleep(1)
    called = time.monotonic() - began
    schedule = {("Running", "compute"): 2 * 6.0, ("Running", "plain"): 2 * 2.0}
    deadline = time.monotonic() + 60
    while sum((found := scraped(group.name)).values()) < 2 * (called + 15):  # Ray reports every ten seconds
        assert time.monotonic() < deadline, found
        time.sleep(1)
    for what, seconds in schedule.items():
        assert -0.5 < found[what] - seconds < 2.5  # on a busy machine, a call takes longer than it sleeps
    assert found["Idle", ""] > 2 * 4
