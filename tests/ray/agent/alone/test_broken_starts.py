"""Processes that cannot start: their group reports why, and no other group on the node waits for them."""

import os
from functools import partial

import pytest
import ray

from tests.ray.agent.planned import Group, broken
from tests.ray.agent.test_executor import ranks


@pytest.fixture(scope="module")
def cluster(patient_raylets):
    return patient_raylets


def told(reports, name, *words):
    message = ranks(reports, name).message
    return message is not None and all(word in message for word in words)


def test_what_keeps_a_launching_process_from_starting_is_reported(agent, tmp_path):
    new = partial(broken, tmp_path)
    crash, wrong = {"sitecustomize.py": "import os; os.abort()"}, {"ray/__init__.py": "raise ImportError('not Ray')"}
    cases = [
        (new("home", 0, env={"PYTHONHOME": "/nonexistent"}), "exit status 1", "PYTHONHOME", "encodings"),
        (new("loader", 1, env={"LD_LIBRARY_PATH": "{}"}, path={"libc.so.6": "-"}), "exit status 127", "LD_LIBRARY_"),
        (new("crash", 2, path=crash), "signal SIGABRT", "last lines: none"),
        (new("wrong", 3, path=wrong), "exit status 1", "ImportError: not Ray"),
    ]
    found = agent.until(
        lambda reports: all(told(reports, group.name, *words) for group, *words in cases),
        *(group for group, *_ in cases),
        seconds=120,
    )
    for group, *_ in cases:
        report = ranks(found, group.name)
        assert (report.state, report.created) == ("LaunchFailed", 0)
        assert report.message.startswith("the launching process cannot start in pod ")


def test_code_that_keeps_processes_from_starting_is_named_with_their_last_lines(agent, tmp_path):
    """The launching process starts while this code is written: on a busy machine it meets it itself, before a rank."""
    hides, ends = {"queue.py": f"# {tmp_path}"}, {"sitecustomize.py": f"raise SystemExit('no licence') # {tmp_path}"}
    cases = [
        (broken(tmp_path, "hides", 0, code=hides), "/queue; ", "module 'queue' has no attribute"),
        (broken(tmp_path, "ends", 1, code=ends), "/sitecustomize; ", "SystemExit: no licence"),
    ]

    def causes(reports, name):
        report = ranks(reports, name)
        of_ranks = [failure.message for failure in report.failures if failure.reason == "ProcessDied"]
        return of_ranks or [report.message] * (report.state == "LaunchFailed")

    found = agent.until(
        lambda reports: all(causes(reports, group.name) for group, *_ in cases),
        *(group for group, *_ in cases),
    )
    for group, *words in cases:
        (cause,) = causes(found, group.name)
        beginnings = ("it cannot start: ", "the launching process cannot start in pod ")
        assert cause.startswith(beginnings)
        assert all(word in cause for word in ("it ended with exit status 1 before Ray knew it; ", *words))


@pytest.mark.long
def test_no_group_waits_for_processes_of_another_that_hang_or_fail_or_whose_group_is_gone(agent, tmp_path):
    """There are twice as many as this node starts at once, and Ray would wait for each of them for ten minutes."""
    end, sleep = {"sitecustomize.py": "raise SystemExit(7)"}, {"sitecustomize.py": "import time; time.sleep(3600)"}
    ends = [broken(tmp_path, f"ends-{each}", 1, path=end) for each in range(4)]
    hangs = [broken(tmp_path, f"hangs-{each}", 1, path=sleep) for each in range(4)]
    neighbours = [Group("neighbour", bundles=(("actors", 2, 1),)) for _ in range(3)]

    def is_ready(reports):
        return ranks(reports, "neighbour").ready == "0"

    agent.until(is_ready, neighbours[0], *ends, *hangs)
    agent.until(lambda found: all(told(found, group.name, "has not begun") for group in hangs), *hangs)
    agent.until(is_ready, neighbours[1], *hangs)
    agent.until(is_ready, neighbours[2])


CAUSE = r"StartFailed: it ended with exit status 1 .*encodings"
BROKEN = {"num_cpus": 0, "runtime_env": {"env_vars": {"PYTHONHOME": "/nonexistent"}}}


@ray.remote(**BROKEN)
class Actor:
    def __init__(self, argument):
        pass

    async def answer(self):
        return True


class OnlyHere:
    """No other process can unpickle one."""

    def __reduce__(self):
        return (exec, (f"import os; assert os.getpid() == {os.getpid()}",))


def test_a_task_or_an_actor_of_a_program_that_cannot_start_raises_the_cause(agent):
    with pytest.raises(ray.exceptions.RayTaskError, match=CAUSE):
        ray.get(ray.remote(**BROKEN)(lambda _: True).remote(OnlyHere()), timeout=60)
    with pytest.raises(ray.exceptions.ActorDiedError, match=CAUSE):
        ray.get(Actor.remote(OnlyHere()).answer.remote(), timeout=60)
