"""Which ranks are paused, by their group's status, and how an editor is led there."""

import json

import pytest

from tests.unit.client.fake_cluster import FakeCluster, condition, group
from workergroups_cli import launch_json
from workergroups_client.errors import ClientError
from workergroups_client.names import find
from workergroups_client.pauses import pauses_of

PAUSE = {"rank": 2, "where": "t.py:1 in f", "since": "2026-01-01T00:00:00.250000Z", "pod": "p"}


def pauses(*said, incarnation=3, reason="PausedByDebugger", **more):
    conditions = [condition("RanksReady", "True", reason)]
    ranks = {"incarnation": incarnation, "pauses": list(said), **more}
    status = {"incarnation": 3, "conditions": conditions, "ranks": ranks}
    return pauses_of(find(FakeCluster(group("ppo", status=status)), "ppo"))


def test_pauses_are_those_of_the_present_incarnation_by_rank():
    assert [pause.rank for pause in pauses(PAUSE, PAUSE | {"rank": 0})] == [0, 2]
    assert pauses(PAUSE, incarnation=2) == []
    assert pauses(PAUSE, reason="RanksStarting") == []  # the agent's words of a Ray that is lost
    assert (
        pauses(PAUSE, reason="ProcessDied", failures=[{"rank": 1, "reason": "ProcessDied", "message": "killed"}]) != []
    )
    (found,) = pauses(PAUSE | {"port": 5680, "attached": True})
    assert (found.port, found.attached, found.since.microsecond) == (5680, True, 250000)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / ".vscode"


def written(folder):
    return json.loads((folder / "launch.json").read_text())["configurations"]


def test_the_editors_configuration_is_put_next_to_what_is_there(folder):
    folder.mkdir()
    (folder / "launch.json").write_text('{"version": "0.2.0", "configurations": [{"name": "mine"}], "more": 1}')
    for port in (1, 2):
        launch_json.write(launch_json.configuration("ours", port, "/code"))
    first, second = written(folder)
    assert (first["name"], first["connect"], second) == ("ours", {"host": "127.0.0.1", "port": 2}, {"name": "mine"})
    assert first["pathMappings"] == [{"localRoot": "${workspaceFolder}", "remoteRoot": "/code"}]


def test_without_a_file_there_is_one_afterwards(folder):
    launch_json.write(launch_json.configuration("ours", 1, None))
    assert [each["name"] for each in written(folder)] == ["ours"]


@pytest.mark.parametrize("odd", ['{"configurations": [] // mine\n}', "[]", '{"configurations": 1}', "{}"])
def test_a_file_that_it_does_not_understand_stays_as_it_is(folder, odd):
    folder.mkdir()
    (folder / "launch.json").write_text(odd)
    with pytest.raises(ClientError, match="was not changed"):
        launch_json.write(launch_json.configuration("ours", 1, None))
    assert (folder / "launch.json").read_text() == odd
