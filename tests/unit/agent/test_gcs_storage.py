"""When a head uses the state of the one before, and when it drops it."""

import errno
import json
import subprocess
import sys

import pytest

from workergroups_agent import gcs_storage
from workergroups_agent.gcs_storage import MAX_STARTS, GcsStorage
from workergroups_agent.ray_start import storage_of_head

OURS = {"WORKERGROUPS_GCS_STORAGE": "/opt/storage/actors", "RAY_AUTH_TOKEN": "token"}


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "volume" / "actors"


def started(directory, owner="Ray 2.60.0 and its token"):
    """A head that starts, and writes what it knows."""
    storage = GcsStorage(directory, owner)
    storage.prepare()
    known = directory / "state" / "known"
    found = known.exists()
    known.write_text("nodes and ranks")
    return storage, found


def test_a_head_has_what_the_one_before_knew(directory):
    storage, found = started(directory)
    assert not found
    storage.keep()
    for _ in range(2 * MAX_STARTS):  # each of them joins
        storage, found = started(directory)
        assert found
        storage.keep()


def test_another_ray_or_another_cluster_begins_anew(directory, capsys):
    started(directory)[0].keep()
    storage, found = started(directory, "Ray 2.61.0 and its token")
    assert not found
    assert "another cluster or another Ray wrote it" in capsys.readouterr().out
    storage.keep()
    assert started(directory, "Ray 2.61.0 and its token")[1]


def test_a_state_with_which_heads_do_not_start_is_dropped(directory, capsys):
    started(directory)[0].keep()
    assert [started(directory)[1] for _ in range(MAX_STARTS + 2)] == [True] * MAX_STARTS + [False, True]
    assert f"{MAX_STARTS} heads did not start with it" in capsys.readouterr().out


@pytest.fixture
def fill(monkeypatch):
    """Leave no space on the volume."""

    def write_file(path, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    return lambda: monkeypatch.setattr(gcs_storage, "write_file", write_file)


def test_a_state_on_a_full_volume_is_dropped_after_as_many_starts(directory, fill, capsys):
    started(directory)[0].keep()
    fill()
    for _ in range(MAX_STARTS):
        assert started(directory)[1]
    assert not started(directory)[1]
    assert "3 heads did not start with it" in capsys.readouterr().out


def test_a_volume_that_is_full_from_the_beginning_is_an_error(directory, fill):
    fill()
    with pytest.raises(OSError, match="No space left"):
        started(directory)


@pytest.mark.parametrize("notes", ["", "no JSON", "[]", "{}", '{"owner": "Ray 2.60.0 and its token", "starts": "x"}'])
def test_a_state_of_which_nobody_knows_is_dropped(directory, notes):
    started(directory)[0].keep()
    (directory / "heads.json").write_text(notes)
    assert not started(directory)[1]


def test_what_another_head_uses_is_not_dropped(directory, monkeypatch):
    monkeypatch.setattr(gcs_storage, "LEAVING_SECONDS", 0.3)
    storage, _ = started(directory)
    storage.keep()
    lock = directory / "state" / "tables" / "LOCK"
    lock.parent.mkdir()
    lock.touch()
    holds = "import fcntl, sys; f = open(sys.argv[1], 'r+'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", holds, lock], **pipes) as other:
        other.stdout.readline()
        for owner in ("Ray 2.60.0 and its token", "another"):
            for _ in range(MAX_STARTS + 1):
                with pytest.raises(OSError, match="another head uses it"):
                    GcsStorage(directory, owner).prepare()
        other.communicate(b"\n")
    assert started(directory)[1]


def test_a_volume_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="Not a directory"):
        GcsStorage(tmp_path / "file", "owner").prepare()


def test_ray_is_told_by_an_option_so_that_a_ray_of_a_driver_does_not_use_the_state(directory):
    name, _, value = GcsStorage(directory, "owner").option.partition("=")
    assert name == "--system-config"
    assert json.loads(value) == {"gcs_storage": "rocksdb", "gcs_storage_path": str(directory / "state")}


@pytest.mark.parametrize(
    ("environ", "arguments", "keeps"),
    [
        (OURS, ["start", "--head"], True),
        ({}, ["start", "--head"], False),
        (OURS, ["start", "--head", '--system-config={"gcs_storage": "redis"}'], False),
    ],
)
def test_a_users_own_system_config_stays(environ, arguments, keeps):
    assert (storage_of_head(environ, arguments) is not None) == keeps
