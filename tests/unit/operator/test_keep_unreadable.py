"""What runs of an object goes on when the object can no longer be read; only its status reports that."""

import pytest

from tests.unit.operator.make import NODE_GROUP, built, child, decided, group, metadata, observed, of_kind, pool
from workergroups_api.conditions import Explanation
from workergroups_api.manifest import RAY_CLUSTER, RESOURCE_POOL, WORKER_GROUP
from workergroups_operator.desired.access import access
from workergroups_operator.desired.plan import cluster_plan
from workergroups_operator.desired.raycluster import ray_cluster
from workergroups_operator.observed import UnreadableObject

LIVE_GROUP = {"groupName": NODE_GROUP, "replicas": 2, "minReplicas": 2, "template": {"spec": {"containers": []}}}


def running(**more):
    """A cluster of two pools, each with a group, as it is planned."""
    seen = observed(pools=(pool(), pool("other")), groups=(group(), group("neighbour", pools=("other",))))
    live = child(RAY_CLUSTER.kind, "actors", spec={"workerGroupSpecs": [LIVE_GROUP]})
    return {"plan": cluster_plan(seen, decided(seen)), "children": live} | more


def unreadable(kind, name):
    return UnreadableObject(kind, {"metadata": metadata(name)}, Explanation("InvalidSpec", "odd"))


@pytest.fixture
def with_odd_group():
    neighbour = group("neighbour", pools=("other",))
    return observed(
        **running(pools=(pool(), pool("other")), groups=(neighbour,), unreadable=(unreadable(WORKER_GROUP, "trainer"),))
    )


@pytest.fixture
def with_odd_pool():
    groups = (group(), group("neighbour", pools=("other",)))
    return observed(**running(pools=(pool("other"),), groups=groups, unreadable=(unreadable(RESOURCE_POOL, "actors"),)))


def names(planned):
    return {each.name for each in planned}


def test_a_group_that_cannot_be_read_stays_planned_as_it_was(with_odd_group):
    plan = cluster_plan(with_odd_group, decided(with_odd_group))
    assert set(plan.groups) == set(with_odd_group.plan.groups)


def test_a_pool_that_cannot_be_read_and_the_groups_on_it_stay_planned_as_they_were(with_odd_pool):
    plan = cluster_plan(with_odd_pool, decided(with_odd_pool))
    assert names(plan.pools) == {"actors", "other"}
    assert names(plan.groups) == {"trainer", "neighbour"}
    assert next(each for each in plan.groups if each.name == "trainer") in with_odd_pool.plan.groups


def test_the_pods_of_a_pool_that_cannot_be_read_stay(with_odd_pool):
    manifest = ray_cluster(with_odd_pool, built(with_odd_pool), (), decided(with_odd_pool).replicas, token_digest="t")
    assert LIVE_GROUP in manifest["spec"]["workerGroupSpecs"]


def test_the_agent_may_still_report_on_what_keeps_running(with_odd_pool):
    plan = cluster_plan(with_odd_pool, decided(with_odd_pool))
    role = of_kind("Role", access(with_odd_pool.key, plan, with_odd_pool.groups))
    named = {rule["resources"][0]: set(rule["resourceNames"]) for rule in role["rules"]}
    assert named["resourcepools/status"] == {"actors", "other"}
    assert named["workergroups/status"] == {"trainer", "neighbour"}


def test_what_was_deleted_ends():
    seen = observed(**running(pools=(pool("other"),), groups=(group(),)))
    plan = cluster_plan(seen, decided(seen))
    assert names(plan.pools) == {"other"}
    assert plan.groups == ()
    (live,) = [
        each
        for each in ray_cluster(seen, built(seen), (), decided(seen).replicas, token_digest="t")["spec"][
            "workerGroupSpecs"
        ]
        if each["groupName"] == NODE_GROUP
    ]
    assert live["replicas"] == 0
