"""Processes that cannot start: their group reports why, and no other group on the node waits for them."""

import pytest
from ray._private import services

from tests.ray.agent.conftest import running_cluster
from tests.ray.agent.planned import Group, launch
from tests.ray.agent.test_executor import ranks
from workergroups_agent.ray_start import our_start_process


@pytest.fixture(scope="module")
def cluster(ray_environment, rays):
    """Raylets that start processes as they do in pods, and wait for very long for those that do not start."""
    rays.stop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_register_timeout_seconds", "600")
        patch.setattr(services, "start_ray_process", our_start_process(services.start_ray_process))
        with running_cluster() as cluster:
            yield cluster


@pytest.fixture
def broken(tmp_path):
    """A builder of groups of one rank, with files in a directory of their PYTHONPATH, in their code, or variables."""

    def build(number, name, env=None, path=None, code=None):
        directory = tmp_path / name
        for file, text in (path or {}).items():
            (directory / file).parent.mkdir(parents=True, exist_ok=True)
            (directory / file).write_text(text)
        env = {each: value.format(directory) for each, value in (env or {"PYTHONPATH": "{}" if path else ""}).items()}
        return Group(name, bundles=(("actors", number, 1),), launch=launch(env=env), more_files=code or {})

    return build


def told(reports, name, *words):
    message = ranks(reports, name).message
    return message is not None and all(word in message for word in words)


def test_what_keeps_a_launching_process_from_starting_is_reported(agent, broken):
    crash, wrong = {"sitecustomize.py": "import os; os.abort()"}, {"ray/__init__.py": "raise ImportError('not Ray')"}
    cases = [
        (broken(0, "home", {"PYTHONHOME": "/nonexistent"}), "exit status 1", "PYTHONHOME", "encodings"),
        (broken(1, "loader", {"LD_LIBRARY_PATH": "{}"}, {"libc.so.6": "-"}), "exit status 127", "LD_LIBRARY_PATH"),
        (broken(2, "crash", path=crash), "signal SIGABRT", "last lines: none"),
        (broken(3, "wrong", path=wrong), "exit status 1", "ImportError: not Ray"),
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


def test_a_rank_that_cannot_start_has_died_and_its_last_lines_say_why(agent, broken, tmp_path):
    """The launching process starts before this code is on the node."""
    hides, ends = {"queue.py": f"# {tmp_path}"}, {"sitecustomize.py": f"raise SystemExit('no licence') # {tmp_path}"}
    cases = [
        (broken(0, "hides", code=hides), "/queue; ", "module 'queue' has no attribute"),
        (broken(1, "ends", code=ends), "/sitecustomize; ", "SystemExit: no licence"),
    ]
    found = agent.until(
        lambda reports: all(ranks(reports, group.name).failures for group, *_ in cases),
        *(group for group, *_ in cases),
    )
    for group, *words in cases:
        (failure,) = ranks(found, group.name).failures
        assert failure.reason == "ProcessDied"
        assert failure.message.startswith("it cannot start: it ended with exit status 1 before Ray knew it; ")
        assert all(word in failure.message for word in words)


def test_no_group_waits_for_processes_of_another_that_hang_or_fail_or_whose_group_is_gone(agent, broken):
    """There are twice as many as this node starts at once, and Ray would wait for each of them for ten minutes."""
    ends = [broken(1, f"ends-{each}", path={"sitecustomize.py": "raise SystemExit(7)"}) for each in range(4)]
    hangs = [
        broken(1, f"hangs-{each}", path={"sitecustomize.py": "import time\ntime.sleep(3600)"}) for each in range(4)
    ]
    neighbours = [Group("neighbour", bundles=(("actors", 2, 1),)) for _ in range(3)]

    def is_ready(reports):
        return ranks(reports, "neighbour").ready == "0"

    agent.until(is_ready, neighbours[0], *ends, *hangs)
    agent.until(lambda found: all(told(found, group.name, "has not begun") for group in hangs), *hangs)
    agent.until(is_ready, neighbours[1], *hangs)
    agent.until(is_ready, neighbours[2])
