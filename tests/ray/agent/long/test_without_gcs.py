"""An executor whose Ray hangs says nothing; one whose Ray is gone ends, and kubelet starts another."""

import os
import signal
import time

import pytest
from executor_process import EXECUTOR, Process
from planned import NODE_GROUP, Group, launch
from ray.cluster_utils import Cluster
from test_executor import all_ready


@pytest.fixture
def cluster(ray_environment, rays):
    rays.stop()
    ray_environment.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", "3")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield cluster
    cluster.shutdown()


def next_pulse(executor, before=None, seconds=60.0):
    """The pulse after this one, None if there is none in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        pulse = executor.exchange.read_pulse()
        if pulse is not None and pulse != before:
            return pulse
        time.sleep(0.05)
    return None


def test_a_hung_gcs_stops_the_pulse_and_a_dead_one_ends_the_process(cluster, tmp_path):
    executor = Process(cluster, tmp_path, EXECUTOR)
    gcs = cluster.head_node.all_processes["gcs_server"][0].process.pid
    try:
        first = next_pulse(executor)
        assert next_pulse(executor, first, seconds=10) is not None
        os.kill(gcs, signal.SIGSTOP)
        time.sleep(0.5)  # a look that was under way may end
        last = executor.exchange.read_pulse()
        assert next_pulse(executor, last, seconds=3) is None
        os.kill(gcs, signal.SIGCONT)
        assert next_pulse(executor, last, seconds=20) is not None
        os.kill(gcs, signal.SIGKILL)
        assert executor.process.wait(60) != 0
        last = executor.exchange.read_pulse()
        assert next_pulse(executor, last, seconds=1) is None
    finally:
        executor.process.kill()


CODE = """
import workergroups

class Accumulator(workergroups.Worker):
    def __init__(self):
        super().__init__()
        print("rank", self.rank, "is up")
"""


def test_what_ranks_had_printed_is_kept_when_the_head_is_lost(cluster, tmp_path):
    for _ in range(2):
        cluster.add_node(num_cpus=40, num_gpus=4, labels={"ray.io/node-group": NODE_GROUP})
    executor = Process(cluster, tmp_path, EXECUTOR)
    trainer = Group(code=CODE, launch=launch())
    try:
        executor.until(all_ready, trainer)
        time.sleep(1)  # Ray's log monitor looks ten times in a second
        os.kill(cluster.head_node.all_processes["gcs_server"][0].process.pid, signal.SIGKILL)
        assert executor.process.wait(60) != 0
    finally:
        executor.process.kill()
    lines = executor.exchange.last_lines
    dead = lines.of_group(trainer.uid)
    assert [(each.rank, each.reason) for each in dead] == [(0, "HeadLost"), (1, "HeadLost")]
    assert [lines.read(each.key)[1] for each in dead] == [b"rank 0 is up\n", b"rank 1 is up\n"]
