"""An object that exceeds what the operator reads still reports it, under its own name."""

import asyncio
import json

import pytest

from tests.unit.operator.make import Reads
from workergroups_api.manifest import CONFIG_MAP, RESOURCE_POOL, WORKER_GROUP
from workergroups_kube import Page, RefusedObject
from workergroups_operator.members import named_pools, observe_members
from workergroups_operator.membership import ClusterKey, Membership

DEEP = "[" * 3000 + "]" * 3000
CONDITION = {
    "type": "Ready",
    "status": "False",
    "reason": "InvalidSpec",
    "message": "m",
    "observedGeneration": 2,
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


class Client(Reads):
    """Has one pool, as text, that exceeds a limit."""

    def __init__(self, text):
        self._data = text.encode()

    async def get(self, kind, namespace, name):
        if kind is WORKER_GROUP:
            return None
        raise RefusedObject("the JSON is nested more than 400 levels deep", self._data)


def observed(text):
    membership = Membership(clusters={}, pools={("team", "p"): ["p"]}, groups={})
    return asyncio.run(observe_members(Client(text), membership, ClusterKey("team", "p")))


def pool(**metadata):
    meta = {"name": "p", "namespace": "team", "uid": "u", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z"}
    body = {"metadata": meta | metadata, "spec": {"args": "DEEP"}, "status": {"conditions": [CONDITION]}}
    return json.dumps(body).replace('"DEEP"', DEEP)


def test_it_is_named_with_the_reason_and_its_conditions():
    (odd,) = observed(pool()).unreadable
    assert (odd.kind, odd.name, odd.body["metadata"]["generation"]) == (RESOURCE_POOL, "p", 2)
    assert odd.explanation.reason == "InvalidSpec"
    assert "400 levels deep" in odd.explanation.message
    assert odd.body["status"]["conditions"] == [CONDITION]


def test_its_version_is_known_for_the_write_of_its_status():
    """Its latest version could not be read again, since `managedFields` are as deep as the object."""
    (odd,) = observed(pool(resourceVersion="7")).unreadable
    assert odd.body["metadata"]["resourceVersion"] == "7"


def test_it_is_left_out_while_it_is_deleted():
    assert observed(pool(deletionTimestamp="2026-01-01T00:00:00Z")).unreadable == ()


@pytest.mark.parametrize("text", ["", "[]", "{}", "<html>"])
def test_what_has_no_name_is_left_out(text):
    assert observed(text).unreadable == ()


class Groups(Reads):
    """Has a group that is listed, and one that is too large for that."""

    async def pages(self, *_):
        yield Page([("p",)], refused=["b"])

    async def get(self, *_):
        body = {"metadata": {"name": "b"}, "spec": {"pools": [{"name": "q"}], "worker": {"args": "DEEP"}}}
        raise RefusedObject("too deep", json.dumps(body).replace('"DEEP"', DEEP).encode())


def test_the_pools_that_groups_name_include_those_of_a_group_that_exceeds_a_limit():
    assert asyncio.run(named_pools(Groups(), "team")) == {"p", "q"}


class Many(Reads):
    """Has groups that take all variables of a ConfigMap, which comes late; counts the groups that are read at once."""

    def __init__(self):
        self.most = 0
        self._open = 0
        self.asked = []

    async def get(self, kind, namespace, name):
        self.asked.append(kind)
        if kind is CONFIG_MAP:
            await asyncio.sleep(0.01)
            return {"data": {"KEY": "value"}}
        self._open += kind is WORKER_GROUP
        self.most = max(self.most, self._open)
        await asyncio.sleep(0)
        self._open -= kind is WORKER_GROUP
        spec = {"pools": [{"name": "p"}], "worker": {"class": "a.B"}}
        source = {"envFrom": [{"configMapRef": {"name": "shared"}}]} if name != "plain" else {}
        return {"metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"}, "spec": spec | source}


def test_few_groups_are_read_at_once_and_what_they_share_once():
    names = ["plain", *(f"g{number}" for number in range(100))]
    groups = [(name, ("p",)) for name in names]
    membership = Membership({}, {("team", "p"): ["p"]}, {("team", "p"): groups})
    client = Many()
    seen = asyncio.run(observe_members(client, membership, ClusterKey("team", "p")))
    assert seen.environments == {key: {"KEY": "value"} for key in names[1:]}
    assert client.asked.count(CONFIG_MAP) == 1
    assert client.most <= 8
