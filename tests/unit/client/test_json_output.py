"""What scripts read: a versioned list, of whatever many objects, with the custom resources' field names."""

import json

import pytest
from typer.testing import CliRunner

from tests.unit.client.fake_cluster import FakeCluster, condition, group, pool
from workergroups.checking.findings import CheckFinding
from workergroups_cli import job_commands, status_command
from workergroups_cli.app import app
from workergroups_cli.json_output import API_VERSION, job_item, print_list
from workergroups_client.jobs.records import JobRecord
from workergroups_client.ray_cluster.occupants import Occupant

READY = {
    "conditions": [condition("Ready", "True")],
    "observedGeneration": 2,
    "readyNodes": 1,
    "aFieldOfALaterVersion": {"isKept": True},
}
JOB = JobRecord("ppo-1", "FAILED", "python train.py", "", 0.0, 61.5, 3, job="ppo", attempt=1)


def printed(capsys):
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("items", [[], [{"a": 1}], [{"a": 1}, {"a": 2}]])
def test_the_shape_is_the_same_for_none_one_and_many(items, capsys):
    print_list("Job", iter(items))
    assert printed(capsys) == {"apiVersion": API_VERSION, "kind": "JobList", "items": items}


@pytest.mark.parametrize(
    ("objects", "words", "found"),
    [
        ([], [], []),
        ([pool("a", status=READY)], [], [("ResourcePool", "a")]),
        ([pool("a", status=READY), group("a")], [], [("ResourcePool", "a"), ("WorkerGroup", "a")]),
        ([pool("a", status=READY), group("a")], ["a"], [("ResourcePool", "a"), ("WorkerGroup", "a")]),
        ([pool("a", status=READY), group("a")], ["group/a"], [("WorkerGroup", "a")]),
    ],
)
def test_status_lists_objects_as_the_api_server_has_them(monkeypatch, objects, words, found):
    monkeypatch.setattr(status_command, "Cluster", lambda *_: FakeCluster(*objects))
    shown = CliRunner().invoke(app, ["status", *words, "--output", "json"])
    assert shown.exit_code == 0, shown.output
    answer = json.loads(shown.stdout)
    assert (answer["apiVersion"], answer["kind"]) == (API_VERSION, "StatusList")
    assert [(each["kind"], each["metadata"]["name"]) for each in answer["items"]] == found
    for each in answer["items"]:
        assert each["metadata"]["namespace"] == "team"
        assert each["ready"] is (each["kind"] == "ResourcePool")
        assert each["status"] == (READY if each["kind"] == "ResourcePool" else {})


def test_status_leaves_out_who_wrote_which_field_and_the_spec(monkeypatch):
    written = pool("a")
    written["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    monkeypatch.setattr(status_command, "Cluster", lambda *_: FakeCluster(written))
    (item,) = json.loads(CliRunner().invoke(app, ["status", "-o", "json"]).stdout)["items"]
    assert "managedFields" not in item["metadata"]
    assert "spec" not in item


def test_a_job_has_times_as_kubernetes_writes_them(capsys):
    print_list("Job", [job_item("ppo", JOB)])
    (item,) = printed(capsys)["items"]
    assert item == {
        "id": "ppo-1",
        "pool": "ppo",
        "state": "FAILED",
        "entrypoint": "python train.py",
        "message": "",
        "startTime": "1970-01-01T00:00:00Z",
        "endTime": "1970-01-01T00:01:01.500000Z",
        "exitCode": 3,
        "job": "ppo",
        "attempt": 1,
    }


def test_one_job_is_printed_as_a_list_of_jobs_is(capsys):
    with pytest.raises(job_commands.typer.Exit):
        job_commands._tell_state("ppo", JOB, job_commands.Output.json)
    assert printed(capsys)["items"] == [json.loads(json.dumps(job_item("ppo", JOB), default=_text))]


def _text(moment):
    return moment.isoformat().replace("+00:00", "Z")


def test_fields_of_everything_else_have_the_resources_style(capsys):
    print_list("Odd", [CheckFinding("Ray", True, "2.60"), Occupant("group a", "Actor", 0, 4, 4.0, None)], isWell=True)
    answer = printed(capsys)
    assert answer["isWell"] is True
    assert answer["items"][0] == {"subject": "Ray", "isWell": True, "message": "2.60"}
    assert answer["items"][1]["className"] == "Actor"
