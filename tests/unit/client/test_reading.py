"""Custom resources and the agent's answers that the models can or cannot read."""

import json

import pytest

from tests.unit.client.fake_cluster import FakeCluster, condition, group, pool
from workergroups_cli.json_output import print_list
from workergroups_client.errors import ClientError
from workergroups_client.objects.names import find
from workergroups_client.objects.reading import group_status, pool_spec, pool_status
from workergroups_client.objects.status import status_of
from workergroups_client.pods.previous import dead_rank


def target(made):
    return find(FakeCluster(made), "ppo")


def test_fields_that_a_newer_operator_writes_are_ignored():
    assert pool_spec(target(pool("ppo", nodes=3, colour="red"))).nodes == 3
    assert pool_status(target(pool("ppo", status={"nodes": 3, "colour": "red"}))).nodes == 3


@pytest.mark.parametrize(
    ("read", "made", "said"),
    [
        (pool_spec, pool("ppo", nodes="many"), "pool ppo: spec.nodes cannot be read (Input should be a valid integer"),
        (pool_status, pool("ppo", status={"deadline": "soon"}), "pool ppo: status.deadline cannot be read ("),
        (
            group_status,
            group("ppo", status={"conditions": [condition("Ready", "True") | {"reason": 1}]}),
            "group ppo: status.conditions.0.reason cannot be read (",
        ),
    ],
)
def test_a_value_that_cannot_be_read_is_reported_with_object_and_field(read, made, said):
    with pytest.raises(ClientError) as told:
        read(target(made))
    assert str(told.value).startswith(said)
    assert str(told.value).endswith("install the operator's version")


def test_an_agents_answer_that_cannot_be_read_is_reported_too():
    with pytest.raises(ClientError, match=r"^group ppo: the agent's record of a dead rank\.reason cannot be read"):
        dead_rank(target(group("ppo")), {"rank": 1, "incarnation": 1, "uid": "u", "died": "2026-01-01T00:00:00Z"})


def test_scripts_find_the_custom_resources_field_names(capsys):
    pause = {"rank": 2, "where": "t.py:1 in f", "since": "2026-01-01T00:00:00.250000Z", "attached": True}
    paused = condition("RanksReady", "True", "PausedByDebugger") | {"observedGeneration": 2}
    dead = {"rank": 3, "reason": "OutOfMemory", "message": "killed", "pod": "p", "incarnation": 1}
    dead |= {"time": "2026-01-01T00:00:00Z", "lastWords": "the end"}
    status = {"incarnation": 1, "conditions": [paused], "failures": [dead]}
    found = target(group("ppo", status=status | {"ranks": {"incarnation": 1, "pauses": [pause]}}))
    print_list("Odd", [status_of(found).conditions, status_of(found).failures, group_status(found).ranks.pauses])
    assert json.loads(capsys.readouterr().out)["items"] == [[paused], [dead], [pause]]
