"""What ranks get on their nodes before they start: code in folders, mounted code, variables from Secrets."""

import json
import os
from pathlib import Path

import pytest

import workergroups
from tests.ray.agent.planned import ACCUMULATOR, Group, launch
from tests.ray.agent.test_executor import all_ready, is_in, ranks
from workergroups_api.vocabulary import Variable


@pytest.fixture
def deliver():
    """What the kubelet does; the file is removed afterwards."""
    file = Path(os.environ[Variable.GROUP_ENV_DIRECTORY.value]) / "trainer"

    def deliver(digest, **values):
        file.write_text(json.dumps({"digest": digest, "env": values}))

    yield deliver
    file.unlink(missing_ok=True)


def environment(name):
    return workergroups.attach("trainer", timeout=20).execute_all_sync("environment", name)


def test_ranks_have_the_variables_that_the_pod_mounts(agent, deliver):
    deliver("d1", KEY="${HOME} $(x)", FLAVOUR="of the Secret")
    trainer = Group(environment="d1", bundles=(("actors", 0, 8),), launch=launch(env={"OTHER": "plain"}))
    agent.until(all_ready, trainer)
    assert environment("KEY") == ["${HOME} $(x)"] * 8
    assert environment("OTHER") == ["plain"] * 8
    assert environment(Variable.GROUP_ENV.value) == [None] * 8
    assert environment("RANK") == [str(rank) for rank in range(8)]


def test_the_launch_reports_what_it_waits_for_and_goes_on_when_that_comes(agent, deliver):
    deliver("d0", KEY="old")
    trainer = Group(environment="d1", bundles=(("actors", 0, 8),))
    words = "waiting for the kubelet to deliver the environment of group trainer to pod"
    report = ranks(agent.until(lambda reports: words in (ranks(reports).message or ""), trainer))
    assert (report.state, report.created) == ("Launching", 0)
    deliver("d1", KEY="new")
    agent.go_on_until(all_ready)
    assert environment("KEY") == ["new"] * 8


def test_a_new_incarnation_ends_a_launch_that_waits(agent, deliver):
    deliver("d0")
    trainer = Group(environment="d1")
    agent.until(lambda reports: "waiting for the kubelet" in (ranks(reports).message or ""), trainer)
    trainer.incarnation, trainer.environment = 2, "d0"
    agent.until(all_ready, trainer)


def test_code_of_a_directory_that_the_pool_mounts(agent, tmp_path):
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "accumulator.py").write_text(ACCUMULATOR)
    mounted = launch("team.accumulator.Accumulator", config_map=None, code_path=str(tmp_path))
    agent.until(all_ready, Group(code=None, launch=mounted))
    assert workergroups.attach("trainer").execute_all_sync("add", x=[1, 1]) == [1, 2]


def test_without_that_directory_the_launch_fails_and_names_it(agent, tmp_path):
    absent = Group(code=None, launch=launch(config_map=None, code_path=str(tmp_path / "absent")))
    report = ranks(agent.until(is_in("LaunchFailed"), absent))
    assert f"spec.code.path: there is no directory {tmp_path}/absent in pod" in report.message
    assert "spec.volumes of pool actors" in report.message


def test_code_in_folders(agent):
    class InFolders(Group):
        @property
        def files(self):
            return {"team/ranks/accumulator.py": ACCUMULATOR}

    agent.until(all_ready, InFolders(launch=launch("team.ranks.accumulator.Accumulator")))
