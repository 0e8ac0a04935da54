"""How a node gives notice before it ends, and for whom it waits."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from workergroups.node import notice

HOLDER = "from workergroups.node import notice; notice.{}(); print(flush=True); import time; time.sleep(60)"


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    path = tmp_path / "notice"
    monkeypatch.setenv("WORKERGROUPS_NOTICE", str(path))
    # Other tests may have such files open.
    monkeypatch.setattr(notice, "_WAITS", f"waits-{os.getpid()}-{tmp_path.name}")
    monkeypatch.setattr(notice, "_is_raylet", lambda pid: False)
    monkeypatch.setattr(notice, "_RAY_START", f"ray-start-{os.getpid()}-{tmp_path.name}")
    return path


@pytest.fixture
def process():
    started = []

    def start(function, prefix):
        code = f"from workergroups.node import notice; notice.{prefix[0]} = {prefix[1]!r}; {HOLDER.format(function)}"
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        started.append(child)
        child.stdout.readline()
        return child

    yield start
    for child in started:
        child.kill()
        child.wait()
        child.stdout.close()


def test_a_node_whose_ranks_do_not_care_ends_at_once_with_ray(process, monkeypatch):
    monkeypatch.setenv("RAY_CLOUD_INSTANCE_ID", "pod")
    ray_start = process("begin", ("_RAY_START", notice._RAY_START))
    began = time.monotonic()
    notice.give(30)
    assert time.monotonic() - began < 5
    assert ray_start.wait(5) == -signal.SIGKILL


def test_with_rays_own_start_the_raylet_is_killed(process, monkeypatch):
    raylet = process("wait_for_me", ("_WAITS", "of nobody"))
    monkeypatch.setattr(notice, "_is_raylet", lambda pid: pid == raylet.pid)
    notice.give(0)
    assert raylet.poll() is None  # outside of a pod, the node stays
    monkeypatch.setenv("RAY_CLOUD_INSTANCE_ID", "pod")
    notice.give(0)
    assert raylet.wait(5) == -signal.SIGKILL


def test_a_node_waits_for_a_rank_that_has_not_answered_until_the_deadline(process):
    rank = process("wait_for_me", ("_WAITS", notice._WAITS))
    began = time.monotonic()
    notice.give(0.5)
    assert time.monotonic() - began >= 0.5
    assert rank.poll() is None


def test_a_node_waits_no_longer_once_all_have_answered_or_died(process):
    answered = notice.wait_for_me()
    rank = process("wait_for_me", ("_WAITS", notice._WAITS))

    def tell(given):
        assert given.reason == notice.REASON
        assert 0 < given.seconds <= 30
        rank.kill()
        answered()

    watch = threading.Thread(target=notice.watch, args=[tell])
    watch.start()
    began = time.monotonic()
    notice.give(30)
    assert time.monotonic() - began < 10
    watch.join()


def test_the_notice_counts_down_to_zero(file):
    assert notice.current() is None
    notice.give(0)
    given = notice.current()
    assert given is not None
    assert given.seconds == 0
    assert notice.read(notice.to_record(given)) == given


@pytest.mark.parametrize(
    "record", [None, b"", b"odd", b"[]", b"{}", b'{"reason": 3, "deadline": 1.0}', b'{"reason": "x"}', b"[" * 100_000]
)
def test_what_is_no_notice_is_ignored(record):
    assert notice.read(record) is None


def test_the_next_container_of_the_pod_knows_nothing_of_the_notice(file, process):
    notice.give(0)
    process("begin", ("_RAY_START", notice._RAY_START))
    assert notice.current() is None


def test_where_no_node_gives_notice_there_is_none(monkeypatch):
    monkeypatch.delenv("WORKERGROUPS_NOTICE")
    assert not notice.is_expected()
    assert notice.current() is None


def say_and_stay(connection):
    connection.send("forked")
    time.sleep(60)


def test_a_node_does_not_wait_for_what_a_rank_has_forked():
    answered = notice.wait_for_me()
    ours, theirs = multiprocessing.Pipe()
    fork = multiprocessing.get_context("fork").Process(target=say_and_stay, args=[theirs], daemon=True)
    fork.start()
    assert ours.recv() == "forked"
    assert notice.holders(notice._WAITS) == [os.getpid()]
    answered()
    assert notice.holders(notice._WAITS) == []
    fork.kill()
    fork.join()
