"""How many nodes a pool has, and which pods go, while its size changes."""

from dataclasses import replace

import pytest

from tests.unit.operator.make import (
    CONNECTED,
    HEAD,
    NODE_GROUP,
    SESSION,
    child,
    decided,
    group,
    observed,
    of_kind,
    pod,
    pool,
    reservation,
    statuses,
    wanted,
)
from workergroups_api.conditions import find
from workergroups_api.plan import ClusterPlan, PlannedBundles, PlannedGroup, PlannedPool
from workergroups_api.report import GroupReport
from workergroups_operator.desired.plan import cluster_plan

PODS = ("p-0", "p-1", "p-2", "p-3")
RUNNING = {"containerStatuses": [{"name": "ray-worker", "state": {"running": {}}}]}


def planned_pool(nodes, settled=0):
    return PlannedPool(
        name="actors",
        uid="uid-actors",
        node_group=NODE_GROUP,
        nodes=nodes,
        settled=settled,
        processes_per_node=2,
        bundle={"CPU": 10.0},
        vendor="nvidia",
        devices_per_process=1,
        max_colocate_count=10,
    )


def planned_group(name="trainer", start=0, nodes=4):
    bundles = (PlannedBundles(pool="actors", uid="uid-actors", start=start, count=2 * nodes),)
    return PlannedGroup(name=name, uid=f"uid-{name}", incarnation=1, session=SESSION, bundles=bundles)


def running_group(name="trainer", pools=("actors",), ranks=8, **spec):
    report = GroupReport(session=SESSION, incarnation=1, state="Launched", created=ranks, ready_count=ranks)
    return group(name, pools, status={"ranks": report.to_json(), "incarnation": 1, "session": SESSION}, **spec)


def launched(seen):
    """The same, with what the status says after the first reconcile."""
    groups = []
    for each in seen.groups:
        after = update_of(seen, each.name).after.model_copy(update={"ranks": each.status.ranks})
        groups.append(each.model_copy(update={"status": after}))
    return replace(seen, groups=tuple(groups))


def ray_cluster(replicas, *names):
    live = {"groupName": NODE_GROUP, "replicas": replicas, "template": {}}
    live |= {"scaleStrategy": {"workersToDelete": list(names)}} if names else {}
    return child("RayCluster", "actors", spec={"workerGroupSpecs": [live]})


def worker(name, *, is_leaving=False, **status):
    made = pod("worker", name, **(RUNNING | status))
    if is_leaving:
        made["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:00Z"
    return made


def cluster(nodes, report=None, pods=None, groups=(), planned=4, replicas=None, named=(), **spec):
    """A pool that had four nodes, and should have another number."""
    found = reservation(*PODS) if report is None else report
    return observed(
        pools=(pool(nodes=nodes, status=found | {"nodes": planned if replicas in (None, 10) else replicas}, **spec),),
        groups=groups,
        pods=(pod("head"), *(map(worker, PODS) if pods is None else pods)),
        children=ray_cluster(planned if replicas is None else replicas, *named),
        plan=ClusterPlan(
            cluster="actors",
            pools=(planned_pool(planned, settled=min(planned, nodes)),),
            groups=tuple(planned_group(each.name) for each in groups),
        ),
    )


def asked(seen):
    """How many pods the RayCluster asks for, and which of them KubeRay deletes."""
    (found,) = of_kind("RayCluster", wanted(seen))["spec"]["workerGroupSpecs"]
    return found["replicas"], sorted(found.get("scaleStrategy", {}).get("workersToDelete", ()))


def planned_size(seen):
    (found,) = cluster_plan(seen, decided(seen)).pools
    return found.nodes, found.settled


def test_a_pool_that_grows_is_planned_and_asked_for_at_once():
    seen = cluster(6)
    assert (planned_size(seen), asked(seen)) == ((6, 4), (6, []))


def test_a_pool_that_nobody_holds_is_planned_with_fewer_nodes_and_keeps_its_pods_until_bundles_are_released():
    seen = cluster(2)
    assert (planned_size(seen), asked(seen)) == ((2, 2), (4, []))


RELEASED = reservation(*PODS, reserved=2, plannedNodes=2)


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (RELEASED, (2, ["p-2", "p-3"])),
        (reservation(*PODS, reserved=2, plannedNodes=2, leaving="2-3"), (4, [])),
        (reservation(*PODS, reserved=1, plannedNodes=2), (4, [])),
        (reservation(*PODS, reserved=2, plannedNodes=3), (4, [])),
        (reservation(*PODS, reserved=2, plannedNodes=2, generation=0), (4, [])),
        (reservation(*PODS, reserved=2, plannedNodes=2, session="before"), (4, [])),
        (reservation(*PODS, reserved=2, plannedNodes=2, pods="p-{3,0}"), (2, ["p-1", "p-2"])),
        (reservation(*PODS, reserved=2, plannedNodes=2, pods="p-{0,gone}"), (4, [])),
        (reservation(*PODS, reserved=2, plannedNodes=2, pods=None), (4, [])),
    ],
    ids=[
        "the bundles are released",
        "not all are",
        "a node that stays has lost its bundles",
        "of another plan",
        "of another spec",
        "of another session",
        "which pods go does not depend on their names",
        "a pod that stays has been replaced",
        "by an agent of an earlier version",
    ],
)
def test_pods_go_when_the_agent_reports_which_of_them_hold_nothing(report, expected):
    assert asked(cluster(2, report, planned=2, replicas=4)) == expected


def test_pods_in_which_nothing_runs_go_whatever_is_reported():
    waiting = [pod("worker", name, phase="Pending") for name in ("p-1", "p-2")]
    pods = (worker("p-0"), *waiting, worker("p-3"))
    assert asked(cluster(2, reservation(), pods, planned=2, replicas=4)) == (2, ["p-1", "p-2"])
    assert asked(cluster(1, reservation(), pods, planned=1, replicas=4)) == (2, ["p-1", "p-2"])


def test_a_pod_is_named_until_it_is_gone():
    pods = (worker("p-0"), worker("p-1"), worker("p-2", is_leaving=True), worker("p-3"))
    assert asked(cluster(2, reservation(), pods, planned=2, replicas=2, named=["p-2", "p-3"])) == (2, ["p-2", "p-3"])
    assert asked(cluster(2, reservation(), pods[:3], planned=2, replicas=2, named=["p-2", "p-3"])) == (2, ["p-2"])
    assert asked(cluster(2, reservation(), pods[:2], planned=2, replicas=2, named=["p-2", "p-3"])) == (2, [])


def test_a_pod_that_is_leaving_counts_as_one_that_goes():
    pods = (worker("p-0"), worker("p-1"), worker("p-2", is_leaving=True), worker("p-3"))
    assert asked(cluster(3, reservation(), pods, planned=3, replicas=4)) == (3, ["p-2"])


def test_while_kuberay_creates_a_pod_none_goes():
    assert asked(cluster(2, RELEASED, map(worker, PODS[:3]), planned=2, replicas=4)) == (4, [])


def test_the_names_of_many_pods_go_in_turns():
    names = tuple(f"p-{number:03}" for number in range(100))
    report = reservation(*names, reserved=10, plannedNodes=10)
    replicas, named = asked(cluster(10, report, map(worker, names), planned=10, replicas=100))
    assert (replicas, len(named)) == (36, 64)
    assert not set(named) & set(names[:10])


@pytest.mark.parametrize(("pods", "replicas"), [(2, 2), (3, 3), (4, 4)])
def test_what_somebody_else_writes_into_the_ray_cluster_is_no_size_of_the_pool(pods, replicas):
    """Pods that KubeRay has created for it stay until the agent reports that they hold nothing."""
    seen = cluster(2, reservation(), map(worker, PODS[:pods]), planned=2, replicas=10)
    assert asked(seen) == (replicas, [])


def test_a_pool_that_is_enlarged_again_in_the_middle_keeps_what_is_left():
    seen = cluster(4, RELEASED, planned=2, replicas=2, named=["p-2", "p-3"])
    assert (planned_size(seen), asked(seen)) == ((4, 2), (4, []))


def test_a_pool_that_reserves_nothing_shrinks_once_the_agent_knows_the_new_size():
    late = reservation(*PODS, reserved=0)
    assert asked(cluster(2, late, reservation="None")) == (4, [])
    known = reservation(*PODS, reserved=0, plannedNodes=2)
    assert asked(cluster(2, known, reservation="None", planned=2, replicas=4)) == (2, ["p-0", "p-1"])


def update_of(seen, name):
    return next(each for each in statuses(seen).updates if each.metadata["name"] == name)


def test_groups_that_run_on_the_nodes_keep_them_and_the_status_names_them():
    seen = cluster(1, groups=(running_group("a"), running_group("b")))
    assert (planned_size(seen), asked(seen)) == ((4, 1), (4, []))
    status = update_of(seen, "actors").after
    assert [(each.group, each.nodes) for each in status.victims] == [("a", "1-3"), ("b", "1-3")]
    assert status.nodes == 4
    said = find(status.conditions, "UpToDate")
    assert (said.status, said.reason) == ("False", "Shrinking")
    assert "spec.nodes is 1, the pool has 4 nodes, since groups run on the others: a (nodes 1-3), b" in said.message
    assert find(status.conditions, "Ready").status == "True"


def test_there_are_victims_for_sixteen_groups_at_most():
    groups = tuple(running_group(f"g{number}") for number in range(20))
    seen = cluster(1, groups=groups, maxColocateCount=50)
    assert len(update_of(seen, "actors").after.victims) == 16


def test_a_group_that_follows_leaves_the_nodes_with_another_incarnation():
    before = launched(cluster(4, groups=(running_group(resize="Follow"),)))
    seen = cluster(1, groups=before.groups)
    assert planned_size(seen) == (1, 1)
    (found,) = cluster_plan(seen, decided(seen)).groups
    assert (found.incarnation, found.world_size) == (2, 2)


@pytest.mark.parametrize(
    ("reserved", "resize", "incarnation", "ranks"),
    [(6, "Follow", 2, 12), (6, "Never", 1, 8), (5, "Follow", 1, 8)],
    ids=["it follows", "it stays", "not before the new nodes have their bundles"],
)
def test_what_a_group_on_the_whole_pool_does_when_it_grows(reserved, resize, incarnation, ranks):
    names = (*PODS, "p-4", "p-5")
    before = launched(cluster(4, groups=(running_group(resize=resize),)))
    report = reservation(*names, reserved=reserved, plannedNodes=6)
    seen = cluster(6, report, map(worker, names), groups=before.groups)
    (found,) = cluster_plan(seen, decided(seen)).groups
    assert (found.incarnation, found.world_size) == (incarnation, ranks)
    assert update_of(seen, "trainer").after.bundles == found.bundles


def test_a_group_keeps_its_size_without_the_plan():
    """Its status knows what it runs on."""
    before = launched(cluster(4, groups=(running_group(),)))
    grown = replace(cluster(6, groups=before.groups), plan=None)
    (found,) = cluster_plan(grown, decided(grown)).groups
    assert (found.incarnation, found.world_size) == (1, 8)


def test_a_pool_that_grows_is_not_ready_and_its_groups_are():
    for report in (reservation(*PODS), reservation(*PODS, "p-5", plannedNodes=6, reserved=4)):
        pods = [*map(worker, PODS), worker("p-4"), worker("p-5")]
        seen = cluster(6, report, pods, groups=(running_group(),))
        ready = update_of(seen, "actors").ready
        assert (ready.status, ready.reason) == ("False", "NodesStarting")
        conditions = update_of(seen, "trainer").after.conditions
        assert find(conditions, "PoolsReady").status == "True"
        said = find(conditions, "UpToDate")
        assert (said.status, said.reason) == ("False", "OldSize")
        assert "spec.nodes of pool actors is 6, and the ranks run on 4: recreate them" in said.message


@pytest.mark.parametrize("lost", range(4))
def test_a_group_is_not_ready_if_a_pod_of_its_own_is_gone(lost):
    pods = [worker(name) for name in PODS if name != PODS[lost]]
    halves = [{"name": "actors", "bundles": {"start": start, "count": 4}} for start in (0, 4)]
    groups = [running_group(name, [half], ranks=4) for name, half in zip("ab", halves, strict=True)]
    seen = cluster(4, pods=pods, groups=tuple(groups))
    found = [find(update_of(seen, name).after.conditions, "PoolsReady").status for name in "ab"]
    assert found == (["False", "True"] if lost < 2 else ["True", "False"])


def test_with_a_lost_agent_nothing_shrinks():
    seen = cluster(2, RELEASED, planned=2, replicas=4, groups=())
    lost = replace(CONNECTED, known=(HEAD, SESSION), is_silent=True)
    assert asked(replace(seen, agent=lost)) == (4, [])


def test_a_pool_that_shrinks_stays_ready_while_pods_leave():
    pods = (worker("p-0"), worker("p-1"), worker("p-2", is_leaving=True), worker("p-3", is_leaving=True))
    seen = cluster(2, RELEASED, pods, planned=2, replicas=2, named=["p-2", "p-3"])
    status = update_of(seen, "actors").after
    assert (find(status.conditions, "Ready").status, status.nodes, status.victims) == ("True", 2, None)
    assert (
        status.selector
        == "workergroups.dev/cluster=actors,workergroups.dev/pool=actors,workergroups.dev/component=worker"
    )
