"""Whatever a legal object contains, it alone reports the reason; its neighbours are served, and their statuses true."""

import pytest

from tests.simulation.faults import INTERNAL, Refuse, Rule
from tests.simulation.machines import NO_SUCH_NODE
from tests.simulation.monitor import SLACK_SECONDS
from tests.simulation.scene import NEVER_RESTARTED, condition
from workergroups_api.manifest import CONFIG_MAP, RESOURCE_POOL, WORKER_GROUP
from workergroups_api.names import CLUSTER_LABEL

SHARED = {"clusterName": "shared"}
BOUND = 5 + SLACK_SECONDS


def lists(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


def objects(levels):
    value = {}
    for _ in range(levels):
        value = {"deep": value}
    return value


async def neighbour(scene):
    await scene.pool("a-good", **SHARED)
    await scene.group("good", pools=[{"name": "a-good"}], **NEVER_RESTARTED)
    await scene.ready(WORKER_GROUP, "good", seconds=20)


async def is_served(scene):
    """A dead rank of the neighbour shows within the bound, and a new group on its pool becomes ready."""
    await scene.group("later", pools=[{"name": "a-good"}])
    await scene.ready(WORKER_GROUP, "later", seconds=20)
    live = scene.world.live_ranks("shared")
    scene.world.kill_rank("shared", next(rank for rank in live if rank.name.group == "good"))
    await scene.until(WORKER_GROUP, "good", "Ready", "False", "ProcessDied", seconds=BOUND)


DEEP_TEMPLATE = {"spec": {"affinity": objects(200)}}


@pytest.mark.parametrize(
    ("worker", "said"),
    [
        ({"args": [lists(300)]}, "nested"),
        ({"kwargs": {"a": objects(300)}}, "nested"),
        ({"args": ["x" * 1_400_000]}, "bytes"),
        ({"kwargs": {f"k{n}": "\u00e9" * 2_000 for n in range(200)}}, "bytes"),
    ],
    ids=["lists", "objects", "a text", "texts"],
)
async def test_an_odd_group_reports_it_and_its_neighbours_are_served(scene, worker, said):
    await neighbour(scene)
    await scene.group("odd", pools=[{"name": "a-good"}], worker={"class": "train.Trainer"} | worker)
    odd = await scene.until(WORKER_GROUP, "odd", "Ready", "False", "InvalidSpec", seconds=BOUND)
    assert said in condition(odd)["message"]
    await is_served(scene)


@pytest.mark.parametrize(
    "spec",
    [{"podTemplate": DEEP_TEMPLATE}, {"head": {"podTemplate": DEEP_TEMPLATE}}],
    ids=["template", "template of the head"],
)
async def test_an_odd_pool_reports_it_and_its_neighbours_are_served(scene, spec):
    await neighbour(scene)
    await scene.pool("odd", **SHARED, **spec)
    odd = await scene.until(RESOURCE_POOL, "odd", "Ready", "False", "InvalidSpec", seconds=BOUND)
    assert "nested" in condition(odd)["message"]
    await is_served(scene)


async def test_an_environment_that_no_process_can_have_never_reaches_a_node(scene):
    """Its characters pass admission; as Ray writes them they exceed what the kernel takes."""
    await neighbour(scene)
    env = [{"name": f"A{number}", "value": "\u00e9" * 30_000} for number in range(3)]
    await scene.group("odd", pools=[{"name": "a-good"}], env=env)
    odd = await scene.until(WORKER_GROUP, "odd", "Ready", "False", "InvalidSpec", seconds=BOUND)
    assert "spec.env has" in condition(odd)["message"]
    assert "odd" not in (await scene.get(CONFIG_MAP, "shared-plan"))["data"]["plan.json"]
    await is_served(scene)


async def test_a_pool_for_which_the_ray_cluster_has_no_room_reports_it_and_its_neighbours_are_served(scene):
    await neighbour(scene)
    env = [{"name": f"A{number}", "value": "x" * 3_200} for number in range(140)]
    for name in ("b1", "b2", "b3"):
        await scene.pool(name, **SHARED, env=env)
    # Its own reason may come late, behind more than a megabyte of its neighbours' environment.
    odd = await scene.until(RESOURCE_POOL, "b3", "Ready", "False", "ClusterTooLarge", seconds=20)
    assert "with pool b3 the RayCluster of cluster shared would have" in condition(odd)["message"]
    for name in ("b1", "b2"):
        await scene.ready(RESOURCE_POOL, name, seconds=30)
    await is_served(scene)


async def test_a_pool_whose_pods_etcd_would_not_take_reports_it(scene):
    await neighbour(scene)
    await scene.pool("odd", **SHARED, env=[{"name": f"A{number}", "value": "x" * 3_200} for number in range(250)])
    odd = await scene.until(RESOURCE_POOL, "odd", "Ready", "False", "InvalidSpec", seconds=BOUND)
    assert "spec.env: the JSON has" in condition(odd)["message"]
    await is_served(scene)


async def test_a_plan_that_somebody_has_blown_up_leaves_no_status_that_may_be_untrue(scene):
    await neighbour(scene)
    blown_up = {"data": {f"k{number}": "" for number in range(60_000)}}
    await scene.api.merge(CONFIG_MAP, scene.namespace, "shared-plan", blown_up)
    pool = await scene.until(RESOURCE_POOL, "a-good", "Ready", "Unknown", "ObjectTooLarge", seconds=BOUND)
    assert "ConfigMap shared-plan" in condition(pool)["message"]
    await scene.until(WORKER_GROUP, "good", "Ready", "Unknown", "ObjectTooLarge", seconds=BOUND)
    await scene.delete(CONFIG_MAP, "shared-plan")
    await scene.ready(WORKER_GROUP, "good", seconds=20)


def foreign_pod(namespace, number, args):
    """A pod that no node takes, with the cluster's label."""
    metadata = {"name": f"a-foreign-{number}", "namespace": namespace, "labels": {CLUSTER_LABEL: "shared"}}
    container = {"name": "c", "image": "example.test/image", "args": args}
    spec = {"containers": [container], "nodeSelector": {NO_SUCH_NODE: "true"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("count", "args"),
    [(9, ["x" * 1_000_000]), (2, ["x"] * 205_000)],
    ids=["together", "each by itself"],
)
async def test_pods_that_exceed_what_the_operator_reads_keep_no_status_from_being_true(scene, count, args):
    await neighbour(scene)
    for number in range(count):
        await scene.api.create(foreign_pod(scene.namespace, number, args))
    await is_served(scene)


FORBIDDEN = Refuse(403, "Forbidden", 'User "operator" cannot get this')


@pytest.mark.parametrize("plural", ["pods", "rolebindings", "replicasets", "services"])
@pytest.mark.parametrize("refusal", [FORBIDDEN, INTERNAL], ids=["403", "500"])
async def test_what_the_operator_cannot_read_leaves_no_status_that_may_be_untrue(scene, plural, refusal):
    await neighbour(scene)
    scene.proxy.rule(Rule(lambda r: str(r).startswith(f"operator GET {plural}"), refusal, times=10**6))
    rank = next(iter(scene.world.live_ranks("shared")))
    scene.world.kill_rank("shared", rank)
    for kind, name in ((RESOURCE_POOL, "a-good"), (WORKER_GROUP, "good")):
        found = await scene.until(kind, name, "Ready", "Unknown", "ReadFailed", seconds=BOUND)
        assert refusal.message in condition(found)["message"]
    scene.proxy.end_faults()
    await scene.until(WORKER_GROUP, "good", "Ready", "False", "ProcessDied", seconds=BOUND)
