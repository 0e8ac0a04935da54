"""Pools in Kueue's queues, with Kueue's part played by `kueue_contract`: it admits, preempts and compares."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from tests.api.kueue_contract import FLAVOR, QUEUE, KueueContract
from tests.simulation.api import eventually
from tests.simulation.scene import condition, pool
from workergroups_api.manifest import RAY_CLUSTER, RESOURCE_POOL, WORKER_GROUP
from workergroups_api.names import OPERATOR_FIELD_MANAGER

QUIET_SECONDS = 2.0


@pytest.fixture
def kueue(scene, runner, tmp_path):
    """Kueue without any quota."""
    stack = AsyncExitStack()
    running = KueueContract.run(scene.api, scene.namespace, tmp_path, quota=0)
    yield runner.run(stack.enter_async_context(running))
    runner.run(stack.aclose())


async def queued_pool(scene, name="p", queue="research", **spec):
    body = pool(scene.namespace, name, **spec)
    body["metadata"]["labels"] = {QUEUE: queue, "app.kubernetes.io/instance": "applied-by-argo"}
    return await scene.api.create(body)


async def admitted(scene, kueue):
    """A pool and a group on a cluster that Kueue has admitted, ready and at rest."""
    kueue.quota = 1
    await queued_pool(scene)
    await scene.group("p")
    await scene.ready(RESOURCE_POOL, "p", seconds=20)
    group = await scene.ready(WORKER_GROUP, "p", seconds=20)
    await scene.rest(QUIET_SECONDS)
    return group


async def suspended(scene, name="p"):
    async def is_suspended():
        found = await scene.api.get(RAY_CLUSTER, scene.namespace, name)
        return found if found and found["spec"].get("suspend") else None

    return await eventually("a suspended RayCluster", is_suspended)


async def unchanged(scene, name="p"):
    """Nothing of the RayCluster changes for a while."""
    before = await scene.get(RAY_CLUSTER, name)
    await asyncio.sleep(QUIET_SECONDS)
    after = await scene.get(RAY_CLUSTER, name)
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    return after


def templates(cluster):
    spec = cluster["spec"]
    return [spec["headGroupSpec"]["template"], *(group["template"] for group in spec["workerGroupSpecs"])]


def has_flavor(cluster):
    return all(
        FLAVOR["labels"].items() <= each["metadata"]["labels"].items()
        and FLAVOR["nodeSelector"].items() <= each["spec"].get("nodeSelector", {}).items()
        and FLAVOR["tolerations"][0] in each["spec"]["tolerations"]
        for each in templates(cluster)
    )


def owned(cluster, path):
    """The managers that own a field of the RayCluster, such as `spec.suspend`."""
    owners = set()
    for entry in cluster["metadata"]["managedFields"]:
        part = entry["fieldsV1"]
        for key in path.split("."):
            part = part.get(f"f:{key}") if part is not None else None
        if part is not None:
            owners.add((entry["manager"], entry["operation"]))
    return owners


async def test_a_pool_that_waits_in_a_queue_says_for_what_and_has_no_deadline(scene, kueue):
    await queued_pool(scene)
    await scene.group("p")
    await suspended(scene)

    async def says_why():
        return "WaitingForQuota" in condition(await scene.get(RESOURCE_POOL, "p"), "Admitted").get("message", "")

    await eventually("Kueue's words", says_why, 15)
    # Before, the API server may still have to answer whether it accepts the pods.
    found = await scene.until(RESOURCE_POOL, "p", "Ready", "False", "Queued")
    assert "queue research" in condition(found, "Admitted")["message"]
    assert condition(found, "Progressing")["status"] == "Unknown"
    assert "deadline" not in found["status"]
    group = await scene.until(WORKER_GROUP, "p", "Ready", "False", "PoolQueued")
    assert condition(group, "Progressing")["status"] == "Unknown"
    assert "deadline" not in group["status"]
    cluster = await unchanged(scene)
    labels = cluster["metadata"]["labels"]
    assert labels[QUEUE] == "research"
    assert "app.kubernetes.io/instance" not in labels
    assert (OPERATOR_FIELD_MANAGER, "Apply") not in owned(cluster, "spec.suspend")
    assert not await scene.api.list(RAY_CLUSTER, scene.namespace, labelSelector="app.kubernetes.io/instance")


async def test_an_admitted_cluster_runs_with_what_the_admission_added(scene, kueue):
    await admitted(scene, kueue)
    found = await scene.get(RESOURCE_POOL, "p")
    assert condition(found, "Admitted")["message"] == "by ClusterQueue research-gpus"
    assert condition(found, "UpToDate")["status"] == "True"
    assert has_flavor(await unchanged(scene))
    await scene.stop_operator()
    scene.start_operator()
    assert has_flavor(await unchanged(scene))
    assert not kueue.broken
    assert not kueue.stopped


@pytest.mark.timeout(120)
async def test_what_is_asked_of_an_admitted_cluster_waits_for_its_next_admission(scene, kueue):
    before = await admitted(scene, kueue)
    await scene.edit(RESOURCE_POOL, "p", {"podTemplate": {"metadata": {"labels": {"team": "rl"}}}})
    found = await scene.until(RESOURCE_POOL, "p", "UpToDate", "False", "ChangesWait")
    assert "delete the RayCluster" in condition(found, "UpToDate")["message"]
    assert condition(found)["status"] == "True"
    assert has_flavor(await unchanged(scene))

    kueue.quota = 0
    kueue.preempt("p", "to make room for one of a higher priority")
    found = await scene.until(RESOURCE_POOL, "p", "Admitted", "False", "Evicted", seconds=15)
    assert "Preempted: to make room for one of a higher priority" in condition(found, "Admitted")["message"]
    assert condition(found)["reason"] == "Evicted"
    assert condition(found, "Progressing")["status"] == "Unknown"
    await scene.until(WORKER_GROUP, "p", "Ready", "False", "PoolQueued")

    async def has_the_new_template():
        group = (await scene.get(RAY_CLUSTER, "p"))["spec"]["workerGroupSpecs"][0]
        return group["template"]["metadata"]["labels"].get("team") == "rl"

    await eventually("the new template, while the cluster is suspended", has_the_new_template)
    assert (await scene.get(RAY_CLUSTER, "p"))["spec"]["suspend"]

    kueue.quota = 1
    await scene.ready(RESOURCE_POOL, "p", seconds=30)
    after = await scene.ready(WORKER_GROUP, "p", seconds=20)
    assert after["status"]["incarnation"] > before["status"]["incarnation"]
    assert condition(await scene.get(RESOURCE_POOL, "p"), "UpToDate")["status"] == "True"
    assert has_flavor(await unchanged(scene))
    assert not kueue.broken
    assert kueue.stopped == ["evicted: to make room for one of a higher priority"]


@pytest.mark.long
async def test_a_second_pool_on_an_admitted_cluster_is_refused_and_harms_nothing(scene, kueue):
    await admitted(scene, kueue)
    await queued_pool(scene, "q", clusterName="p")
    found = await scene.until(RESOURCE_POOL, "q", "Ready", "False", "AdmittedWithoutPool", seconds=15)
    assert "its own spec.clusterName" in condition(found)["message"]
    assert condition(found, "Progressing")["status"] == "False"
    assert len((await unchanged(scene))["spec"]["workerGroupSpecs"]) == 1
    assert condition(await scene.get(RESOURCE_POOL, "p"))["status"] == "True"
    assert not kueue.stopped
    await scene.delete(RAY_CLUSTER, "p")
    await scene.ready(RESOURCE_POOL, "q", seconds=30)
    await scene.ready(RESOURCE_POOL, "p", seconds=30)
    assert not kueue.broken


async def test_pools_that_are_created_together_are_admitted_together(scene, kueue):
    kueue.quota = 1
    await queued_pool(scene, "p")
    await asyncio.sleep(0.5)
    await queued_pool(scene, "q", clusterName="p")
    for name in ("p", "q"):
        await scene.ready(RESOURCE_POOL, name, seconds=30)
    assert not kueue.broken
    assert not kueue.stopped


@pytest.mark.long
async def test_another_queue_waits_while_the_cluster_runs_and_is_taken_while_it_waits(scene, kueue):
    await admitted(scene, kueue)
    await scene.api.merge(RESOURCE_POOL, scene.namespace, "p", {"metadata": {"labels": {QUEUE: "production"}}})
    found = await scene.until(RESOURCE_POOL, "p", "UpToDate", "False", "ChangesWait")
    assert f"{QUEUE}=production waits" in condition(found, "UpToDate")["message"]
    assert (await unchanged(scene))["metadata"]["labels"][QUEUE] == "research"
    kueue.quota = 0
    kueue.preempt("p", "reclaimed")

    async def is_in_the_other_queue():
        return (await scene.get(RAY_CLUSTER, "p"))["metadata"]["labels"][QUEUE] == "production"

    await eventually("the other queue", is_in_the_other_queue)
    assert not kueue.broken


async def test_the_oldest_pools_queue_counts(scene, kueue):
    await queued_pool(scene, "p")
    await asyncio.sleep(1.1)
    await queued_pool(scene, "q", queue="production", clusterName="p")
    found = await scene.until(RESOURCE_POOL, "q", "UpToDate", "False", "LabelIgnored")
    assert f"{QUEUE}=production is not on RayCluster p" in condition(found, "UpToDate")["message"]
    assert (await suspended(scene))["metadata"]["labels"][QUEUE] == "research"


async def test_a_queue_that_nobody_serves_holds_nothing_back(scene):
    await queued_pool(scene)
    found = await scene.ready(RESOURCE_POOL, "p", seconds=20)
    assert condition(found, "Admitted")["reason"] == "NotQueued"
    await scene.rest(QUIET_SECONDS)
