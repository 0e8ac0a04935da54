"""An observer whose GCS hangs says nothing; one whose GCS is gone looks for the next; a hung executor is named."""

import os
import signal
import time

import pytest
from ray.cluster_utils import Cluster

from tests.ray.agent.executor_process import Process
from tests.ray.agent.planned import NODE_GROUP, Group, launch
from tests.ray.agent.test_executor import all_ready
from workergroups_agent.account import SILENCE


@pytest.fixture
def cluster(ray_environment, rays):
    rays.stop()
    ray_environment.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", "3")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield cluster
    cluster.shutdown()


def next_heartbeat(agent, before=None, seconds=60.0):
    """The heartbeat after this one, None if there is none in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        heartbeat = agent.exchange.read_heartbeat()
        if heartbeat is not None and heartbeat != before:
            return heartbeat
        time.sleep(0.05)
    return None


def test_a_hung_gcs_stops_the_heartbeat_and_a_dead_one_is_looked_for(cluster, tmp_path):
    agent = Process(cluster, tmp_path)
    gcs = cluster.head_node.all_processes["gcs_server"][0].process.pid
    try:
        first = next_heartbeat(agent)
        assert next_heartbeat(agent, first, seconds=10) is not None
        os.kill(gcs, signal.SIGSTOP)
        time.sleep(0.5)  # a look that was under way may end
        last = agent.exchange.read_heartbeat()
        assert next_heartbeat(agent, last, seconds=3) is None
        os.kill(gcs, signal.SIGCONT)
        assert next_heartbeat(agent, last, seconds=20) is not None
        os.kill(gcs, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while agent.exchange.read_heartbeat() is not None:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert next_heartbeat(agent, seconds=1) is None
        assert agent.process.wait(60) != 0  # the executor: its supervisor starts the next one
        assert agent.observer.poll() is None
    finally:
        agent.kill()


def test_a_frozen_executor_is_named_and_what_is_observed_stays_true(cluster, tmp_path):
    for _ in range(2):
        cluster.add_node(num_cpus=40, num_gpus=4, labels={"ray.io/node-group": NODE_GROUP})
    agent = Process(cluster, tmp_path)
    trainer, critic = Group(), Group("critic")
    try:
        agent.until(all_ready, trainer)
        agent.process.send_signal(signal.SIGSTOP)
        try:
            waiting = agent.until(lambda reports: reports.groups["critic"].report.message, trainer, critic)
            assert waiting.groups["critic"].report.message == SILENCE
            assert waiting.groups["trainer"].report.ready_count == 2
        finally:
            agent.process.send_signal(signal.SIGCONT)
        agent.until(all_ready, trainer, critic)
    finally:
        agent.kill()


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
    agent = Process(cluster, tmp_path)
    trainer = Group(code=CODE, launch=launch())
    try:
        agent.until(all_ready, trainer)
        time.sleep(1)  # Ray's log monitor looks ten times in a second
        os.kill(cluster.head_node.all_processes["gcs_server"][0].process.pid, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while not agent.exchange.previous_logs.of_group(trainer.uid):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        time.sleep(1)
    finally:
        agent.kill()
    lines = agent.exchange.previous_logs
    dead = lines.of_group(trainer.uid)
    assert [(each.rank, each.reason) for each in dead] == [(0, "HeadLost"), (1, "HeadLost")]
    assert [lines.read(each.key)[1] for each in dead] == [b"rank 0 is up\n", b"rank 1 is up\n"]
