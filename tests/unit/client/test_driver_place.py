"""Where the driver of a job runs."""

import pytest

from tests.unit.client.fake_cluster import FakeCluster, head, labels, pool
from tests.unit.client.test_attempts import World
from workergroups_client.errors import NotFoundError, NotRunningError
from workergroups_client.jobs.driver_place import DriverPlace
from workergroups_client.objects.names import find
from workergroups_client.pods.pods import PodContainer

# A pool of two nodes, whose numbers are those of its placement groups, not the order of the nodes.
TABLES = {
    "/api/v0/placement_groups": [
        {"name": "ppo/uid-of-ppo/0/b", "state": "CREATED"},
        {"name": "ppo/uid-of-ppo/1/a", "state": "CREATED"},
    ],
    "/api/v0/nodes": [
        {"node_id": "a", "node_ip": "10.0.0.1", "state": "ALIVE"},
        {"node_id": "b", "node_ip": "10.0.0.2", "state": "ALIVE"},
    ],
}


class Ray:
    def get(self, path, **_):
        return {"data": {"result": {"result": TABLES[path]}}}


def worker(name, address):
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team", "uid": f"uid-of-{name}", "labels": labels("worker")},
        "status": {"phase": "Running", "podIP": address},
    }


def place(cluster, node):
    return DriverPlace.of(cluster, Ray(), find(cluster, "ppo"), node)


def test_without_a_number_it_is_the_head_and_ray_is_asked_for_nothing():
    found = place(FakeCluster(pool("ppo"), head()), None)
    assert (found.resources, found.container()) == ({}, PodContainer("ppo-head", "ray-head"))


def test_a_number_is_that_of_the_nodes_reservation():
    cluster = FakeCluster(pool("ppo"), worker("of-a", "10.0.0.1"), worker("of-b", "10.0.0.2"))
    found = place(cluster, 0)
    assert found.resources == {"node:10.0.0.2": 0.001}
    assert found.container() == PodContainer("of-b", "ray-worker")


def test_a_node_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(NotFoundError, match="pool ppo has no node 2 in Ray: choose from 0, 1"):
        place(FakeCluster(pool("ppo")), 2)


def test_a_node_that_ray_has_lost_is_not_there_yet(monkeypatch):
    monkeypatch.setitem(TABLES, "/api/v0/nodes", [{"node_id": "b", "node_ip": "10.0.0.2", "state": "DEAD"}])
    with pytest.raises(NotRunningError, match="Ray has lost node 0 of pool ppo"):
        place(FakeCluster(pool("ppo")), 0)


def test_a_node_whose_pod_is_gone_is_named():
    with pytest.raises(NotFoundError, match=r"pod of the node with address 10\.0\.0\.2 is not running: workergroups"):
        place(FakeCluster(pool("ppo"), worker("of-a", "10.0.0.1")), 0).container()


@pytest.mark.parametrize(("node", "asked"), [(None, None), (1, {"node:10.0.0.1": 0.001})])
def test_ray_starts_the_driver_where_the_job_asks_for_it(monkeypatch, node, asked):
    world = World(monkeypatch)
    monkeypatch.setattr("tests.unit.client.test_attempts.Ray.get", Ray.get)
    world.submit(retries=0, node=node)
    assert world.jobs["train"].get("entrypoint_resources") == asked
