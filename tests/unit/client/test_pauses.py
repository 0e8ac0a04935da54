"""Which processes are paused, and how an editor is led there."""

import json

import pytest

from tests.unit.client.fake_cluster import FakeCluster, group, pool
from workergroups.debugger.pauses import Pause
from workergroups.processes.tables import ActorRow, DriverRow, GcsTables, PauseRow, TaskRow
from workergroups_cli import launch_json
from workergroups_client.errors import ClientError
from workergroups_client.objects.names import find
from workergroups_client.pods import pauses
from workergroups_client.pods.pauses import Pauses

PAUSE = Pause("node", "t.py", 1, "f", "/code", "", 0, 1767225600.25)
TABLES = GcsTables(
    actors=(
        ActorRow("a0", "Actor", "ppo/UID/3/0-of-3", "workergroups", "", "01"),
        ActorRow("a2", "Actor", "ppo/UID/3/2-of-3", "workergroups", "w2", "01"),
        ActorRow("other", "Actor", "ppo/another-uid/1/0-of-1", "workergroups", "w3", "01"),
        ActorRow("plain", "TaskRunner", "", "anybody", "w4", "02"),
    ),
    drivers=(DriverRow("02", "ppo-7k", "head", 9),),
    tasks=(TaskRow("t", "d", "", "w5", "fit", "running", 3.0, "02"),),
    pauses=tuple(PauseRow(id_, "pod", PAUSE) for id_ in ("a2", "a0", "other", "plain", "w5", "02", "ended")),
)


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setattr(pauses, "head", lambda *_: ("head", "ray-head"))
    monkeypatch.setattr(pauses, "ask_for_processes", lambda *_: TABLES.to_json())
    ours = group("ppo")
    ours["metadata"]["uid"] = "UID"
    return FakeCluster(pool("ppo"), ours)


def test_the_pauses_of_a_group_are_those_of_its_ranks(cluster):
    found = Pauses(cluster, find(cluster, "group/ppo")).now()
    assert [(pause.who, pause.rank, pause.port) for pause in found] == [("rank 0", 0, None), ("rank 2", 2, None)]
    assert found[0].since.microsecond == 250000


@pytest.mark.parametrize(
    ("target", "who"),
    [
        ("job/ppo-7k", ["driver", "actor TaskRunner", "task fit"]),
        ("actor/TaskRunner", ["actor TaskRunner"]),
        ("actor/other", []),
        ("node/pod", ["actor TaskRunner", "task fit"]),
    ],
)
def test_the_pauses_of_any_process_are_found_by_what_it_is(cluster, target, who):
    found = Pauses(cluster, find(cluster, "pool/ppo"), target).now()
    assert sorted(pause.who for pause in found if pause.rank is None) == sorted(who)


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


@pytest.mark.parametrize("text", ["${command:evil}", "/code/${env:TOKEN}", "code", "", "/a\x1b]0;b", "/a\u202eb"])
def test_a_text_that_is_no_plain_path_does_not_reach_the_editor(text):
    assert launch_json.configuration("ours", 1, text)["pathMappings"] == []


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
