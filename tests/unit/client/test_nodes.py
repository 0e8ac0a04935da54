"""Which Ray node a number means."""

import pytest

from tests.unit.client.fake_cluster import FakeCluster, pool
from workergroups_client.errors import NotFoundError
from workergroups_client.objects.names import find
from workergroups_client.pods.nodes import node_id


class Ray:
    """Ray's tables of placement groups and nodes."""

    def __init__(self, *placed):
        self.placed = placed

    def get(self, path, **query):
        rows = [{"name": name, "state": "CREATED"} for name in self.placed] if "placement" in path else []
        return {"data": {"result": {"result": rows}}}


POOL = find(FakeCluster(pool("ppo")), "ppo")


def test_nodes_have_the_numbers_of_their_reservations():
    ray = Ray("ppo/uid-of-ppo/1/b", "ppo/uid-of-ppo/0/a", "ppo/an-older-pools/0/c", "somebody-elses", None)
    cluster = FakeCluster()
    assert [node_id(cluster, ray, POOL, number) for number in (0, 1)] == ["a", "b"]
    with pytest.raises(NotFoundError, match="pool ppo has no node 2 in Ray: choose from 0, 1"):
        node_id(cluster, ray, POOL, 2)


def test_a_pool_that_has_none_reports_it():
    with pytest.raises(NotFoundError, match="no node of pool ppo has joined Ray: workergroups status ppo says why"):
        node_id(FakeCluster(), Ray(), POOL, 0)
