"""A rank that is killed when the counter of its control group grows. Only the counter is simulated, by a file."""

import os
import signal
import socket
import threading

import pytest
import ray

import workergroups
from tests.ray.agent.planned import Group
from tests.ray.agent.test_executor import all_ready
from workergroups.node import memory_kills
from workergroups.ray_private.gcs import Gcs
from workergroups.waiting import poll
from workergroups_agent.ray_start import tell_memory_kills


@pytest.fixture
def count(agent, tmp_path, monkeypatch):
    """A function that lets the kernel's counter of the test's only machine, which is each node's, grow."""
    monkeypatch.setenv("RAY_CLOUD_INSTANCE_ID", socket.gethostname())
    groups = tmp_path / "cgroup"
    groups.mkdir()
    file = groups / "memory.events"
    file.write_text("oom 1\noom_kill 3\n")

    def grow():
        with file.open("r+") as events:  # without an empty file in between
            events.write("oom 1\noom_kill 4\n")

    address = ray.get_runtime_context().gcs_address
    threading.Thread(target=tell_memory_kills, args=[address, groups], daemon=True).start()
    yield grow
    # A rank that another test kills soon has another reason.
    Gcs.of_driver().delete(memory_kills.KV_NAMESPACE, socket.gethostname())


def told():
    return memory_kills.read(Gcs.of_driver().get(memory_kills.KV_NAMESPACE, socket.gethostname()))


def failures(agent):
    return agent.exchange.read_reports().groups["trainer"].report.failures


def test_a_rank_that_dies_when_the_kernel_counts_a_kill_is_reported_as_out_of_memory(agent, count):
    trainer = Group()
    agent.until(all_ready, trainer)
    pids = workergroups.attach("trainer").execute_all_sync("pid")
    os.kill(pids[1], signal.SIGKILL)
    agent.go_on_until(lambda _: failures(agent))
    assert [(each.rank, each.reason) for each in failures(agent)] == [(1, "ProcessDied")]
    count()
    agent.go_on_until(lambda _: failures(agent)[0].reason == "OutOfMemory", seconds=10)
    assert failures(agent)[0].message == memory_kills.MESSAGE


def test_the_driver_gets_the_same_reason_from_a_node_that_has_told_already(agent, count):
    agent.until(all_ready, Group())
    group = workergroups.attach("trainer")
    pids = group.execute_all_sync("pid")
    before = told()
    count()
    assert poll(lambda: told() not in ((), before), timeout=10)
    os.kill(pids[1], signal.SIGKILL)
    with pytest.raises(workergroups.RankDiedError) as raised:
        group.execute_all_sync("pid")
    assert (raised.value.rank, raised.value.reason) == (1, "OutOfMemory")
