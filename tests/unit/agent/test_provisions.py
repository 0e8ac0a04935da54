"""What the launching tasks do on each node before ranks start there."""

import json
from pathlib import Path

import pytest

from workergroups_agent.executor import launch_record, provisions
from workergroups_agent.executor.launch_record import LaunchStep, Record
from workergroups_agent.executor.provisions import CodeDirectory, Environment, Provisions, provide


@pytest.fixture(autouse=True)
def pod(monkeypatch):
    monkeypatch.setenv("RAY_CLOUD_INSTANCE_ID", "p-worker-b")


NOTHING = Provisions("p")


def code(directory, files):
    return CodeDirectory(str(directory / "code" / "digest"), files)


def written(directory):
    root = directory / "code" / "digest"
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_files_are_written_with_their_folders(tmp_path):
    files = {"train.py": "import models.actor", "models/actor.py": "é", "models/deep/x.json": "{}"}
    assert provide(code(tmp_path, files), NOTHING) is None
    assert written(tmp_path) == files


def test_code_that_another_task_has_written_stays(tmp_path):
    assert provide(code(tmp_path, {"a.py": "1"}), NOTHING) is None
    assert provide(code(tmp_path, {"a.py": "2"}), NOTHING) is None
    assert written(tmp_path) == {"a.py": "1"}


@pytest.mark.parametrize("name", ["../a.py", "/a.py", "a/../../b.py", "", "."])
def test_no_file_is_written_outside_of_the_directory(tmp_path, name):
    assert "the code cannot be written in pod p-worker-b" in provide(code(tmp_path, {name: "x"}), NOTHING)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_file_that_is_also_a_folder_is_reported(tmp_path):
    assert "cannot be written" in provide(code(tmp_path, {"a": "x", "a/b.py": "y"}), NOTHING)


@pytest.mark.parametrize("files", [{"a": "x", "a/b.py": "y"}, {"a.py": "x", "../b.py": "y"}])
def test_a_try_that_fails_leaves_nothing(tmp_path, files):
    provide(code(tmp_path, files), NOTHING)
    assert list((tmp_path / "code").iterdir()) == []


def test_the_slower_of_two_tasks_leaves_nothing(tmp_path, monkeypatch):
    rename = Path.rename

    def second(draft, target):
        (target / "of the other").mkdir(parents=True)
        return rename(draft, target)

    monkeypatch.setattr(Path, "rename", second)
    assert provide(code(tmp_path, {"a.py": "1"}), NOTHING) is None
    assert [path.name for path in (tmp_path / "code").iterdir()] == ["digest"]


def test_a_directory_that_the_pool_mounts_is_taken_as_it_is(tmp_path):
    assert provide(None, Provisions("p", code_path=str(tmp_path))) is None


@pytest.mark.parametrize("name", ["absent", "file"])
def test_without_the_directory_the_message_names_field_and_pool(tmp_path, name):
    (tmp_path / "file").touch()
    problem = provide(None, Provisions("actors", code_path=str(tmp_path / name)))
    assert problem.startswith(f"spec.code.path: there is no directory {tmp_path}/{name} in pod p-worker-b: mount it")
    assert "spec.volumes of pool actors" in problem


def test_ranks_without_code_need_nothing():
    assert provide(None, NOTHING) is None


class TestEnvironment:
    """Variables from Secrets and ConfigMaps, which the kubelet delivers within a minute or so."""

    NEEDED = Provisions("p", environment=Environment("g", "d1", ("uid-g", 3, 0), "try"))

    @pytest.fixture
    def told(self, tmp_path, monkeypatch):
        """What is written into the GCS."""
        told = []
        monkeypatch.setenv("WORKERGROUPS_GROUP_ENV_DIRECTORY", str(tmp_path / "mounted"))
        monkeypatch.setattr(launch_record, "write", lambda *record: told.append(record))
        return told

    def deliver(self, directory, digest):
        (directory / "mounted").mkdir(exist_ok=True)
        (directory / "mounted" / "g").write_text(json.dumps({"digest": digest, "env": {}}))

    def test_what_is_there_is_not_waited_for(self, told, tmp_path):
        self.deliver(tmp_path, "d1")
        assert provide(None, self.NEEDED) is None
        assert told == []

    def test_it_tells_once_what_it_waits_for(self, told, tmp_path, monkeypatch):
        self.deliver(tmp_path, "d0")
        pauses = iter([lambda: None, lambda: self.deliver(tmp_path, "d1")])
        monkeypatch.setattr(provisions.time, "sleep", lambda _: next(pauses)())
        assert provide(None, self.NEEDED) is None
        words = "waiting for the kubelet to deliver the environment of group g to pod p-worker-b"
        assert told == [(("uid-g", 3, 0), Record("try", LaunchStep.WAITING, words))]

    def test_it_does_not_wait_for_ever(self, told, tmp_path, monkeypatch):
        self.deliver(tmp_path, "d0")
        monkeypatch.setattr(provisions, "DELIVERY_SECONDS", -1.0)
        assert "for the kubelet to deliver the environment of group g to pod p-worker-b" in provide(None, self.NEEDED)
