"""The overview of `workergroups status`."""

import json

import pytest

from tests.unit.client.fake_cluster import FakeCluster, condition, group, pool
from workergroups_cli.output import Output
from workergroups_cli.status_command import _overview
from workergroups_client import ClientError

READABLE = pool("ppo", status={"conditions": [condition("Ready", "True")], "observedGeneration": 2})
UNREADABLE = group("odd", status={"incarnation": "first"})


@pytest.mark.parametrize("output", Output)
def test_an_object_that_cannot_be_read_is_named_after_the_others(output, capsys):
    with pytest.raises(ClientError, match=r"group odd: status\.incarnation cannot be read"):
        _overview(FakeCluster(UNREADABLE, READABLE), output)
    shown = capsys.readouterr().out
    assert "ppo" in shown
    if output is Output.json:
        assert [each["name"] for each in json.loads(shown)] == ["ppo"]


def test_a_namespace_with_nothing_but_such_an_object_is_not_empty(capsys):
    with pytest.raises(ClientError, match="group odd"):
        _overview(FakeCluster(UNREADABLE), Output.text)
    assert "no pools" not in capsys.readouterr().err
