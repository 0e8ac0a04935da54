"""The ranks of the next incarnation are forks of a process that has imported what they need; nothing else differs."""

import dataclasses
import os
import signal
import time
from pathlib import Path

import pytest
import ray

import workergroups
from tests.ray.agent.planned import Agent, Group, launch
from tests.ray.agent.raylets import pods_cluster
from tests.ray.agent.test_executor import all_ready, ranks
from workergroups.processes import stack_dump
from workergroups.ray_private.process import logs_directory
from workergroups.warm import places

CODE = """
import os, random, sys, time
import numpy
import ray
import workergroups

class Accumulator(workergroups.Worker):
    def seen(self):
        print("printed by rank", self.rank, flush=True)
        print("complained by rank", self.rank, file=sys.stderr, flush=True)
        context = ray.get_runtime_context()
        names = "RANK WORLD_SIZE CUDA_VISIBLE_DEVICES OMP_NUM_THREADS NAME RAY_JOB_ID".split()
        return {
            "variables": {name: os.environ.get(name) for name in names},
            "names": sorted(os.environ), "path": sys.path, "arguments": sys.argv[0], "directory": os.getcwd(),
            "nice": os.nice(0), "group": os.getpgid(0) == os.getpid(), "session": context.get_job_id(),
            "oom": open("/proc/self/oom_score_adj").read(), "version": 1,
        }

    def numbers(self):
        ids = ray._raylet
        return random.random(), float(numpy.random.rand()), ids.WorkerID.from_random().hex()

    def server(self):
        return os.environ["WORKERGROUPS_WARM"]

    def parent(self):
        return os.getpid(), os.getppid()

    def wait(self):
        time.sleep(30)

    def actor(self):
        return ray.get_runtime_context().get_actor_id()

    def die(self):
        os._exit(3)
"""


@pytest.fixture(scope="module")
def cluster(ray_environment, rays):
    """Raylets that start processes as they do in pods."""
    rays.stop()
    with pods_cluster() as cluster:
        yield cluster


def group(**more):
    return Group(bundles=(("actors", 0, 2),), code=CODE, **more)


def next_of(group, **changes):
    return dataclasses.replace(group, incarnation=group.incarnation + 1, **changes)


def is_ready(group):
    return lambda reports: all_ready(reports) and ranks(reports).incarnation == group.incarnation


def until_warm(group="trainer"):
    """The process id of the group's fork server, when it waits for the next ranks."""
    directory = Path(workergroups.attach(group).execute_all_sync("server")[0])
    deadline = time.monotonic() + 150
    while not (directory / places.SOCKET).exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return int((directory / places.LOCK).read_text())


def call(method):
    return workergroups.attach("trainer").execute_all_sync(method)


def log_of(pid, kind):
    return "".join(each.read_text() for each in Path(logs_directory()).glob(f"worker-*-{pid}.{kind}"))


def test_forked_ranks_are_like_others_and_heal_from_whatever_happens_to_them_or_their_server(agent):
    first = group(launch=launch(env={"OTHER": "a b", "NAME": "$(OTHER) $(HOME) $HOME ${HOME} $$(HOME)"}))
    agent.until(all_ready, first, seconds=150)
    cold = call("seen")
    assert cold[0]["variables"]["NAME"] == f"a b {os.environ['HOME']} $HOME ${{HOME}} $(HOME)"
    server = until_warm()

    second = next_of(first)
    agent.until(is_ready(second), second, seconds=150)
    pids, parents = zip(*call("parent"), strict=True)
    assert set(parents) == {server}
    assert call("seen") == cold
    numbers = [number for both in call("numbers") for number in both]
    assert len(set(numbers)) == len(numbers)
    for rank, pid in enumerate(pids):
        assert f"printed by rank {rank}\n" in log_of(pid, "out")
        assert f"complained by rank {rank}\n" in log_of(pid, "err")
        assert b"ray::" in Path(f"/proc/{pid}/cmdline").read_bytes()

    actors = call("actor")
    workergroups.attach("trainer").execute_all_async("wait")
    stacks = []
    while not all("in wait" in stack for stack in stacks) or not stacks:
        stacks = list(stack_dump.dump(actors).values())
    assert len(stacks) == 2
    assert all(
        stack.splitlines()[-1].endswith("<module>") and "default_worker.py" in stack.splitlines()[-1]
        for stack in stacks
    )

    # A killed rank is reported at once, and so is one that ends itself.
    os.kill(pids[1], signal.SIGKILL)
    (failure,) = agent.go_on_until(lambda reports: ranks(reports).failures, 20).groups["trainer"].report.failures
    assert (failure.rank, failure.reason) == (1, "ProcessDied")
    third = next_of(second, code=CODE.replace('"version": 1', '"version": 2'))
    agent.until(is_ready(third), third, seconds=150)
    assert {parent for _, parent in call("parent")} == {server}
    assert [each["version"] for each in call("seen")] == [2, 2]
    with pytest.raises(ray.exceptions.RayActorError):
        call("die")

    # The ranks do not need their server.
    fourth = next_of(third)
    agent.until(is_ready(fourth), fourth, seconds=150)
    os.kill(server, signal.SIGKILL)
    assert [each["version"] for each in call("seen")] == [2, 2]
    fifth = next_of(fourth)
    agent.until(is_ready(fifth), fifth, seconds=150)
    assert server not in {parent for _, parent in call("parent")}


def test_the_ranks_of_two_groups_on_a_node_have_their_own_variables_and_code(agent):
    one = group(name="trainer", launch=launch(env={"NAME": "one"}))
    two = Group(
        name="other",
        bundles=(("actors", 0, 2),),
        code=CODE.replace('"version": 1', '"version": 3'),
        launch=launch(env={"NAME": "two"}),
    )
    ready = lambda reports: all(each.report.ready == "0-1" for each in reports.groups.values())  # noqa: E731
    agent.until(ready, one, two, seconds=200)
    of_both = {until_warm(), until_warm("other")}
    one, two = next_of(one), next_of(two)
    agent.until(
        lambda reports: ready(reports) and all(each.report.incarnation == 2 for each in reports.groups.values()),
        one,
        two,
        seconds=200,
    )
    handles = [workergroups.attach(name) for name in ("trainer", "other")]
    assert {parent for handle in handles for _, parent in handle.execute_all_sync("parent")} == of_both
    seen = [each for handle in handles for each in handle.execute_all_sync("seen")]
    assert [(each["variables"]["NAME"], each["version"]) for each in seen] == [("one", 1)] * 2 + [("two", 3)] * 2


def test_the_ranks_of_another_executor_belong_to_its_job(agent, tmp_path, cluster):
    first = group()
    agent.until(all_ready, first, seconds=150)
    server = until_warm()
    ray.shutdown()
    ray.init(address=cluster.address, namespace="workergroups", log_to_driver=False)
    (tmp_path / "next").mkdir()
    following = Agent(tmp_path / "next")
    second = next_of(first)
    following.until(is_ready(second), second, seconds=150)
    assert server not in {parent for _, parent in call("parent")}
    job = ray.get_runtime_context().get_job_id()
    assert {(each["session"], each["variables"]["RAY_JOB_ID"]) for each in call("seen")} == {(job, job)}
    following.until(lambda reports: not reports.groups, pools=())
