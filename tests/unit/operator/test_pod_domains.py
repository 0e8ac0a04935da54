"""Where a pool's pods are in its topology: read once for each pod, from the label of its Kubernetes node."""

import asyncio

import pytest

from tests.unit.operator.make import KEY, api_error, decided, observed, pool, ready_pool, status_of, workers
from workergroups_api.conditions import find
from workergroups_kube import RefusedObject
from workergroups_operator.desired.plan import cluster_plan
from workergroups_operator.observed import Domains
from workergroups_operator.pod_domains import pod_domains

RACK = "example.test/rack"
ALONG_RACKS = {"topology": {"key": RACK}}


class Client:
    """Has nodes with these labels, and counts who is read."""

    def __init__(self, nodes, error=None):
        self._nodes = nodes
        self._error = error
        self.read = []

    async def get(self, kind, namespace, name, *, on_behalf_of):
        assert (kind.kind, namespace, on_behalf_of) == ("Node", None, KEY.namespace)
        self.read.append(name)
        if self._error is not None:
            raise self._error
        labels = self._nodes.get(name)
        return None if labels is None else {"metadata": {"name": name, "labels": labels}}


def on(**nodes):
    """The pods of the pool, on these nodes."""
    pods = workers(*(pod.replace("_", "-") for pod in nodes))
    for pod, node in zip(pods, nodes.values(), strict=True):
        pod["spec"] |= {"nodeName": node} if node else {}
    return pods


def planned(domains):
    """The plan that was made when these domains were known."""
    seen = observed(pools=(pool(**ALONG_RACKS),), domains={"actors": Domains(domains)})
    return cluster_plan(seen, decided(seen))


def found(client, pool_, pods, plan=None):
    return asyncio.run(pod_domains(client, observed(pools=(pool_,), pods=pods, plan=plan)))


NODES = {"m-0": {RACK: "a"}, "m-1": {RACK: "b"}, "m-2": {}}


@pytest.mark.parametrize(
    ("pods", "known", "domains", "read"),
    [
        (on(p_0="m-0", p_1="m-1"), None, {"p-0": "a", "p-1": "b"}, ["m-0", "m-1"]),
        (on(p_0="m-0", p_1="m-0"), None, {"p-0": "a", "p-1": "a"}, ["m-0"]),
        (on(p_0="m-0", p_1=None), None, {"p-0": "a"}, ["m-0"]),
        (on(p_0="m-0", p_1="m-2"), None, {"p-0": "a", "p-1": ""}, ["m-0", "m-2"]),
        (on(p_0="m-0", p_1="gone"), None, {"p-0": "a"}, ["gone", "m-0"]),
        (on(p_0="m-0", p_1="m-1"), {"p-0": "z", "p-9": "a"}, {"p-0": "z", "p-1": "b"}, ["m-1"]),
        (on(p_0="m-0", p_1="m-1"), {"p-0": "", "p-1": "b"}, {"p-0": "", "p-1": "b"}, []),
    ],
    ids=[
        "the label of the pod's node",
        "a node is read once",
        "a pod without a node has no domain yet",
        "a node without the label is in none",
        "a node that is gone is not known",
        "what the plan has is not read again",
        "nor is what is in none",
    ],
)
def test_a_pod_is_in_the_domain_of_its_node(pods, known, domains, read):
    client = Client(NODES)
    plan = None if known is None else planned(known)
    assert found(client, pool(**ALONG_RACKS), pods, plan) == {"actors": Domains(domains)}
    assert client.read == read


@pytest.mark.parametrize(
    "spec", [{}, {"topology": {"mode": "Spread"}}, ALONG_RACKS | {"reservation": "None"}], ids=["", "hosts", "bare"]
)
def test_no_node_is_read_where_the_topology_gives_no_order(spec):
    client = Client(NODES)
    assert (found(client, pool(**spec), on(p_0="m-0")), client.read) == ({}, [])


def test_without_the_right_to_read_nodes_one_attempt_is_made_and_nothing_is_known():
    client = Client(NODES, api_error(403))
    domains = found(client, pool(**ALONG_RACKS), on(p_0="m-0", p_1="m-1"))["actors"]
    assert (client.read, domains.of_pods, bool(domains.unreadable)) == (["m-0"], {}, True)


def test_a_node_that_is_too_large_to_read_is_in_no_domain():
    client = Client(NODES, RefusedObject("too large", b""))
    assert found(client, pool(**ALONG_RACKS), on(p_0="m-0"))["actors"] == Domains({"p-0": ""})


@pytest.mark.parametrize(
    ("domains", "in_plan", "words"),
    [
        ({}, None, "4 of 4 bundles reserved"),
        ({"actors": Domains({"p-0": "a"})}, {"p-0": "a"}, "4 of 4 bundles reserved"),
        (
            {"actors": Domains(unreadable="not allowed")},
            None,
            f"4 of 4 bundles reserved; nodes are numbered by their pods' names, not by {RACK}: not allowed",
        ),
    ],
)
def test_plan_and_status_say_how_the_nodes_are_numbered(domains, in_plan, words):
    seen = observed(pools=(ready_pool().model_copy(update={"spec": pool(**ALONG_RACKS).spec}),), domains=domains)
    assert cluster_plan(seen, decided(seen)).pools[0].domains == in_plan
    assert find(status_of(seen).after.conditions, "BundlesReserved").message == words
