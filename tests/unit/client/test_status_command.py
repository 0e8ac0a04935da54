"""The overview of `workergroups status`."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from tests.unit.client.fake_cluster import SOON, FakeCluster, condition, group, labels, pool
from workergroups_api.conditions import Condition
from workergroups_api.manifest import POD
from workergroups_cli import status_command
from workergroups_cli.app import app
from workergroups_cli.description import _describe, _mark, look_at
from workergroups_cli.output import Output
from workergroups_cli.status_command import _overview
from workergroups_client import ClientError, UnreachableError
from workergroups_client.objects.names import GROUP, POOL, Target
from workergroups_client.objects.status import status_of

READABLE = pool("ppo", status={"conditions": [condition("Ready", "True")], "observedGeneration": 2})
UNREADABLE = group("odd", status={"incarnation": "first"})


@pytest.mark.parametrize("output", Output)
def test_an_object_that_cannot_be_read_is_named_after_the_others(output, capsys):
    with pytest.raises(ClientError, match=r"group odd: status\.incarnation cannot be read"):
        _overview(FakeCluster(UNREADABLE, READABLE), output)
    shown = capsys.readouterr().out
    assert "ppo" in shown
    if output is Output.json:
        assert [each["metadata"]["name"] for each in json.loads(shown)["items"]] == ["ppo"]


class PodsOutOfReach(FakeCluster):
    """Answers no question about these pods."""

    def __init__(self, *objects, which):
        super().__init__(*objects)
        self._which = which

    def select(self, kind, selector="", *, everywhere=False):
        if kind == POD and self._which(selector):
            raise UnreachableError("it does not answer")
        return super().select(kind, selector, everywhere=everywhere)


PENDING = {
    "kind": "Pod",
    "metadata": {"name": "ppo-worker", "namespace": "team", "creationTimestamp": SOON, "labels": labels("worker")},
    "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "8"}}}]},
    "status": {"phase": "Pending"},
}


@pytest.mark.parametrize(
    ("which", "pods", "said"),
    [
        (lambda _: True, 0, ["its pods could not be listed: it does not answer", "its jobs, and what runs in its bun"]),
        # Those of all namespaces.
        (lambda selector: not selector, 1, ["who holds the devices that its pods wait for could not be found out: it"]),
        (lambda selector: "head" in selector, 0, ["its pods could not be listed", "the output of `ray status` is mis"]),
    ],
)
def test_a_part_of_a_description_that_cannot_be_read_hides_no_other(which, pods, said):
    found = look_at(PodsOutOfReach(READABLE, PENDING, which=which), "ppo", with_ray=True)
    assert [status.name for status in found.statuses] == ["ppo"]
    assert len(found.pods) == pods
    assert [sentence for sentence in said if not any(each.startswith(sentence) for each in found.notes)] == []


@pytest.mark.parametrize("output", Output)
def test_a_group_whose_pool_does_not_exist_is_described(output, monkeypatch):
    conditions = [condition("Ready", "False", "PoolNotFound", "there is no pool ppo")]
    alone = group("ppo", status={"conditions": conditions, "observedGeneration": 2})
    monkeypatch.setattr(status_command, "Cluster", lambda *_: FakeCluster(alone))
    done = CliRunner().invoke(app, ["status", "ppo", "-o", output.value])
    assert done.exit_code == 0
    assert "PoolNotFound" in done.stdout
    assert done.stderr.startswith("the jobs of group ppo could not be looked for: there is no pool ppo in namespace")
    if output is Output.json:
        assert [each["kind"] for each in json.loads(done.stdout)["items"]] == ["WorkerGroup"]


def test_a_namespace_with_nothing_but_such_an_object_is_not_empty(capsys):
    with pytest.raises(ClientError, match="group odd"):
        _overview(FakeCluster(UNREADABLE), Output.text)
    assert "no pools" not in capsys.readouterr().err


def test_a_detail_that_cannot_be_read_leaves_the_list_whole_and_is_named_before_anything_is_told(capsys):
    odd = pool("odd", status={"drivers": 3, "observedGeneration": 2})
    _overview(FakeCluster(odd, READABLE), Output.text)
    assert "odd" in capsys.readouterr().out
    with pytest.raises(ClientError, match=r"pool odd: status\.drivers cannot be read"):
        _describe(status_of(Target(POOL, odd)))
    assert not capsys.readouterr().out


LOST = {
    "conditions": [condition("Ready", "True", "DriversLost", "Ray's head was lost with 1 driver (ppo-1)")],
    "observedGeneration": 2,
    "drivers": {"session": "s2", "lost": {"count": 1, "jobs": ["ppo-1"], "time": "2026-01-01T12:00:00Z"}},
}


def test_a_ready_pool_on_which_nothing_runs_since_its_head_was_lost_says_so(capsys):
    _overview(FakeCluster(pool("ppo", status=LOST), READABLE), Output.text)
    first, second = capsys.readouterr().out.splitlines()[1:]
    assert "True" in first
    assert "DriversLost: Ray's head was lost with 1 driver (ppo-1)" in first
    assert "Because" not in second


def test_a_ready_object_of_which_something_is_old_says_so(capsys):
    conditions = [condition("Ready", "True"), condition("UpToDate", "False", "OldPods", "restart it with: x")]
    _overview(FakeCluster(pool("ppo", status={"conditions": conditions, "observedGeneration": 2})), Output.text)
    assert "UpToDate=False: restart it with: x" in capsys.readouterr().out


def test_what_several_conditions_say_is_shown_once(capsys):
    why = "spec.suspend is true: to start it: workergroups resume ppo"
    conditions = [condition(type_, "False", "Suspended", why) for type_ in ("ClusterReady", "NodesReady", "Ready")]
    _describe(status_of(Target(POOL, pool("ppo", status={"conditions": conditions, "observedGeneration": 2}))))
    _, first, second, third = capsys.readouterr().out.splitlines()
    assert first.endswith(f"Suspended: {why}")
    assert all(line.endswith("Suspended: see ClusterReady") for line in (second, third))


def entry(manager, minutes, *fields, **more):
    written = (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat(timespec="seconds")
    of_fields = {"fieldsV1": {f"f:{key}": {} for key in fields}}
    return {"manager": manager, "time": written.replace("+00:00", "Z")} | of_fields | more


OF_SPEC = {"fieldsV1": {"f:spec": {".": {}, "f:suspend": {}, "f:nodes": {}}}}


@pytest.mark.parametrize(
    ("generation", "entries", "said"),
    [
        (
            2,
            [entry("up", 90) | OF_SPEC, entry("kubectl-edit", 5) | OF_SPEC],
            "kubectl-edit",
        ),
        (2, [entry("up", 90) | OF_SPEC, entry("labeller", 5, "metadata")], "up"),
        (2, [entry("up", 90) | OF_SPEC, entry("agent", 5, subresource="status") | OF_SPEC], "up"),
        (1, [entry("up", 90) | OF_SPEC], None),
        (2, [], None),
        (2, [{"manager": "old"}], None),
    ],
)
def test_a_description_says_who_changed_the_spec_last(generation, entries, said, capsys):
    body = pool("ppo", status={"observedGeneration": generation})
    body["metadata"] |= {"generation": generation, "managedFields": entries}
    _describe(status_of(Target(POOL, body)))
    lines = [line for line in capsys.readouterr().out.splitlines() if "last set by" in line]
    assert len(lines) == (said is not None)
    if said is not None:
        assert re.fullmatch(rf"  last set by {said} \w+ ago: spec.nodes, spec.suspend", lines[0])


def test_a_description_names_the_ranks_that_have_other_weights(capsys):
    weights = [
        {"model": "critic", "version": 12, "behind": "", "different": ""},
        {"model": "policy", "version": 12, "behind": "0-1", "different": "3"},
    ]
    body = group("trainer", status={"ranks": {"weights": weights}})
    _describe(status_of(Target(GROUP, body)))
    lines = [line for line in capsys.readouterr().out.splitlines() if "weights:" in line]
    assert lines == [
        "  weights: critic version 12",
        "  weights: policy version 12; an older one on ranks 0-1; other bits than the replicas have on rank 3",
    ]


def test_a_script_sees_how_many_drivers_there_are(capsys):
    _overview(FakeCluster(pool("ppo", status=LOST), READABLE), Output.json)
    lost, other = (each["status"] for each in json.loads(capsys.readouterr().out)["items"])
    assert (lost["drivers"]["lost"]["jobs"], other.get("drivers")) == (["ppo-1"], None)


def test_the_description_of_a_pool_names_its_drivers(capsys):
    _describe(
        status_of(Target(POOL, pool("ppo", status={"drivers": {"session": "s", "running": 1, "jobs": ["ppo-1"]}})))
    )
    assert "drivers connected: 1 ppo-1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("type_", "status", "colour"),
    [
        ("Ready", "True", "green"),
        ("Ready", "False", "red"),
        ("Ready", "Unknown", "yellow"),
        ("Failed", "False", None),
        ("Failed", "True", "red"),
        ("Stalled", "Unknown", "yellow"),
        ("Suspended", "True", "yellow"),
        ("Idle", "False", None),
        ("FromALaterVersion", "True", "green"),
    ],
)
def test_the_colour_of_a_condition_tells_whether_it_needs_attention(type_, status, colour):
    assert _mark(Condition.model_validate(condition(type_, status, "R"))) == colour
