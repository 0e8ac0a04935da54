"""What ranks and drivers do when a node is about to go."""

import os
import subprocess
import sys
import threading
import time

import pytest
import ray

from workergroups import Dispatch, Notice, RayClassWithInitArgs, RayResourcePool, RayWorkerGroup, Worker, register
from workergroups.announcements import notices
from workergroups.node.notice import REASON, to_record
from workergroups.ray_private import records
from workergroups.ray_private.gcs import Gcs


class Saver(Worker):
    """Saves what it has counted when its node is about to go."""

    def __init__(self):
        super().__init__()
        self.count, self.saved = 0, None

    @register(Dispatch.ONE_TO_ALL)
    def count_for(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.notice is None:
            time.sleep(0.01)
        self.count += 1
        return self.count, self.notice

    @register(Dispatch.ONE_TO_ALL)
    def what_was_saved(self):
        return self.saved

    def on_notice(self, notice):
        self.saved = self.count, notice.reason


class AsyncSaver(Saver):
    """Ray runs its methods in an event loop."""

    async def on_notice(self, notice):
        self.saved = "async", notice.reason


class Raiser(Saver):
    """Fails to save."""

    def on_notice(self, notice):
        raise OSError("the disk is full")


class Careless(Worker):
    """Does not want to hear of it."""

    @register(Dispatch.ONE_TO_ALL)
    def count_for(self, seconds):
        time.sleep(seconds)


@pytest.fixture
def group_of(local_ray, tmp_path):
    file = tmp_path / "notice"
    made = []

    def make(cls):
        pool = RayResourcePool([1], use_gpu=False, max_colocate_count=1)
        env = {"WORKERGROUPS_NOTICE": str(file)}
        group = RayWorkerGroup(pool, RayClassWithInitArgs(cls), worker_env=env)
        made.extend([group, pool])
        group.count_for(0)
        return group

    yield make
    for each in made:
        each.close()


@pytest.fixture
def ends_node(tmp_path):
    """Run what Kubernetes runs before it ends a node, and return its process."""
    started = []

    def end(seconds=30):
        env = os.environ | {"WORKERGROUPS_NOTICE": str(tmp_path / "notice")}
        command = [sys.executable, "-m", "workergroups.node.notice", str(seconds)]
        started.append(subprocess.Popen(command, env=env))
        return started[-1]

    yield end
    for process in started:
        process.kill()
        process.wait()


def test_a_rank_saves_between_calls_and_then_its_node_may_go(group_of, ends_node):
    group = group_of(Saver)
    assert group.what_was_saved() == [None]
    counting = group.execute_all_async("count_for", 20)
    hook = ends_node()
    ((count, notice),) = ray.get(counting)
    assert isinstance(notice, Notice)  # the call saw it, and returned early
    assert 0 < notice.seconds <= 30
    assert hook.wait(20) == 0
    assert group.what_was_saved() == [(count, REASON)]


def test_a_rank_whose_methods_are_coroutines_is_told_too(group_of, ends_node):
    group = group_of(AsyncSaver)
    assert ends_node().wait(20) == 0
    assert group.what_was_saved() == [("async", REASON)]


def test_a_rank_that_fails_to_save_keeps_its_node_no_longer(group_of, ends_node):
    group = group_of(Raiser)
    assert ends_node().wait(20) == 0
    assert group.what_was_saved() == [None]


def test_a_busy_rank_keeps_its_node_until_the_deadline(group_of, ends_node):
    class Deaf(Saver):
        @register(Dispatch.ONE_TO_ALL)
        def sleep(self, seconds):
            time.sleep(seconds)

    group = group_of(Deaf)
    call = group.execute_all_async("sleep", 4)
    began = time.monotonic()
    assert ends_node(1).wait(20) == 0
    assert time.monotonic() - began >= 1
    ray.get(call)


def test_a_node_does_not_wait_for_a_rank_that_does_not_want_to_hear(group_of, ends_node):
    group = group_of(Careless)
    group.execute_all_async("count_for", 60)
    assert ends_node(60).wait(20) == 0


@pytest.fixture
def node_of(group_of):
    """The node of a group, as it waits for drivers."""
    gcs, waiting = Gcs.of_driver(), []

    def wait(seconds):
        (pod,) = {node.pod for node in map(records.node, gcs.nodes()) if node.is_alive}
        given = Notice("a test", time.time() + seconds)
        notices.tell(gcs, pod, given)
        waiting.append(threading.Thread(target=notices.wait_for_drivers, args=[gcs, pod, given]))
        waiting[-1].start()
        return waiting[-1]

    yield wait
    for each in waiting:
        each.join()
    for namespace in (notices._NOTICES, notices._DRIVERS):
        for key in gcs.keys(namespace):
            gcs.delete(namespace, key)


def test_a_node_waits_for_a_driver_that_reads_notices_until_it_has_answered(group_of, node_of, monkeypatch):
    group = group_of(Saver)
    assert group.notice is None
    node = node_of(30)
    while (notice := group.notice) is None:
        time.sleep(0.05)
    assert notice.reason == "a test"
    node.join(2 * notices.LOOK_SECONDS)
    assert node.is_alive()
    answering = threading.Thread(target=group.answer_notice)
    answering.start()
    node.join(10)
    assert not node.is_alive()
    answering.join(1)
    assert answering.is_alive()  # as long as Ray has the node
    monkeypatch.setattr(notices, "_live", lambda gcs: set())
    answering.join(10)
    assert not answering.is_alive()
    group.answer_notice()  # there is nothing to answer
    second = node_of(30)
    second.join(10)
    assert not second.is_alive()


def test_a_node_waits_for_no_driver_that_never_asked_or_has_ended_and_for_none_of_ranks_that_have(group_of, node_of):
    group_of(Saver)
    gcs = Gcs.of_driver()
    (pod,) = {node.pod for node in map(records.node, gcs.nodes()) if node.is_alive}
    gcs.put(notices._DRIVERS, "ffff:ended", b'{"keys": ["%s"], "answered": []}' % pod.encode())
    ended = b'{"keys": ["%s", "uid-of-a-group/3"]}' % pod.encode()
    for odd in (b"", b"odd", b'{"keys": 3}', b'{"keys": [[]]}', ended):
        gcs.put(notices._DRIVERS, f"{ray.get_runtime_context().get_job_id()}:{odd!r}", odd)
    node = node_of(30)
    node.join(10)
    assert not node.is_alive()
    assert "ffff:ended" not in gcs.keys(notices._DRIVERS)


def test_a_node_that_gives_notice_while_another_one_ends_does_not_wait_either(group_of, node_of, monkeypatch):
    group = group_of(Saver)
    assert group.notice is None
    gcs, reader = Gcs.of_driver(), group._ranks.notices
    first, second = f"{reader._keys[0]}", "another-pod"
    reader._keys.append(second)
    node = node_of(30)
    while group.notice is None:
        time.sleep(0.05)
    monkeypatch.setattr(notices, "_live", lambda gcs: {first, second})
    answering = threading.Thread(target=group.answer_notice)
    answering.start()
    node.join(10)
    given = Notice("another", time.time() + 30)
    gcs.put(notices._NOTICES, second, to_record(given))
    notices.wait_for_drivers(gcs, second, given)
    assert given.seconds > 20
    monkeypatch.setattr(notices, "_live", lambda gcs: set())
    answering.join(10)
    assert not answering.is_alive()


def test_a_driver_that_does_not_answer_keeps_the_node_until_the_deadline(group_of, node_of):
    group = group_of(Saver)
    assert group.notice is None
    began = time.monotonic()
    node_of(1).join(10)
    assert time.monotonic() - began >= 1
