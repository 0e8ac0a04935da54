"""Changes of what only shapes pods: nothing restarts unless asked for, and then node by node."""

import asyncio

import pytest

from tests.simulation.api import eventually
from tests.simulation.faults import Delay, Rule
from tests.simulation.machines import BROKEN_IMAGE, UNFIT_IMAGE
from tests.simulation.scene import condition
from workergroups_api import manifest as kinds
from workergroups_api.launch import digest
from workergroups_api.manifest import RAY_CLUSTER, RESOURCE_POOL, WORKER_GROUP
from workergroups_api.names import COMPONENT_LABEL, RESTARTED_AT_ANNOTATION
from workergroups_api.vocabulary import Component

ENV = [{"name": "A", "value": "2"}]


async def ready(scene, **spec):
    await scene.pool("p", **{"nodes": 3, "processesPerNode": 1} | spec)
    await scene.group("p")
    return await scene.ready(WORKER_GROUP, "p")


async def restart(scene, name="p", value="now"):
    await scene.annotate(RESOURCE_POOL, name, RESTARTED_AT_ANNOTATION, value)


async def restarted(scene, name="p", value="now", seconds=30.0):
    async def is_over():
        found = await scene.get(RESOURCE_POOL, name)
        is_begun = (found["status"].get("roll") or "").startswith(digest(value))
        return found if is_begun and condition(found)["status"] == "True" else None

    return await eventually(f"pool {name} to be restarted", is_over, seconds)


def pods(scene, component=Component.WORKER, cluster="p"):
    return {pod["metadata"]["uid"]: pod for pod in scene.world.pods(cluster, component)}


def env_of(pod):
    (container,) = pod["spec"]["containers"]
    return {each["name"]: each.get("value") for each in container["env"]}.get("A")


async def test_a_change_restarts_nothing_and_is_reported_by_field(scene):
    old = await ready(scene)
    before = pods(scene).keys() | pods(scene, Component.HEAD).keys()
    await scene.edit(RESOURCE_POOL, "p", {"env": ENV, "image": "example.test/worker:2", "sharedMemory": "1Gi"})
    said = condition(await scene.until(RESOURCE_POOL, "p", "UpToDate", "False", "OldImage"), "UpToDate")
    assert "the spec says example.test/worker:2; env; sharedMemory: 3 of 3 nodes are older" in said["message"]
    assert "so is the head" in said["message"]
    assert "workergroups restart pool/p" in said["message"]
    await asyncio.sleep(1)
    assert pods(scene).keys() | pods(scene, Component.HEAD).keys() == before
    now = await scene.get(WORKER_GROUP, "p")
    assert (condition(now)["status"], now["status"]["incarnation"]) == ("True", old["status"]["incarnation"])


async def test_a_lost_pod_comes_back_as_the_others_are_and_a_change_that_is_taken_back_leaves_no_trace(scene):
    await ready(scene)
    await scene.edit(RESOURCE_POOL, "p", {"resources": {"requests": {"cpu": "2"}}})
    await scene.until(RESOURCE_POOL, "p", "UpToDate", "False", "OldTemplate")
    lost, *_ = pods(scene).values()
    with scene.world.machines.full():
        await scene.world.delete_pod(lost)
        await scene.until(RESOURCE_POOL, "p", "Ready", "False")
    await scene.ready(RESOURCE_POOL, "p", seconds=20)
    assert {pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in pods(scene).values()} == {"100m"}
    await scene.edit(RESOURCE_POOL, "p", {"resources": None})
    await scene.until(RESOURCE_POOL, "p", "UpToDate", "True")


async def fewest_until_replaced(scene, olds):
    """Return how many nodes' pods there were at least, by each event of the pods, until none of `olds` is left."""
    present, fewest = set(olds), len(olds)
    async for event, pod in scene.api.watch(kinds.POD, scene.namespace):
        uid = pod["metadata"]["uid"]
        if event == "DELETED" or "deletionTimestamp" in pod["metadata"]:
            present.discard(uid)
        elif pod["metadata"]["labels"][COMPONENT_LABEL] == Component.WORKER:
            present.add(uid)
        fewest = min(fewest, len(present))
        if not olds & present:
            return fewest


async def test_a_restart_replaces_one_node_at_a_time_and_the_group_once(scene):
    old = await ready(scene)
    before, heads = pods(scene), pods(scene, Component.HEAD)
    await scene.edit(RESOURCE_POOL, "p", {"resources": {"requests": {"cpu": "2"}}})
    watching = asyncio.create_task(fewest_until_replaced(scene, set(before)))
    await restart(scene)
    said = condition(await scene.until(RESOURCE_POOL, "p", "Ready", "False", "Rolling"))
    assert "of 3 new pods created" in said["message"]
    await restarted(scene)
    assert await asyncio.wait_for(watching, 10) == 2
    assert not pods(scene).keys() & before.keys()
    assert {pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in pods(scene).values()} == {"2"}
    assert pods(scene, Component.HEAD).keys() == heads.keys(), "resources of nodes are no reason for a new head"
    await scene.until(RESOURCE_POOL, "p", "UpToDate", "True")
    new = await scene.ready(WORKER_GROUP, "p", seconds=20)
    assert new["status"]["incarnation"] == old["status"]["incarnation"] + 1
    await scene.rest(1.0)


@pytest.mark.parametrize("nodes", [1, 2])
async def test_no_ranks_are_launched_on_a_node_that_a_restart_ends(scene, nodes):
    """Ray takes it for one that serves until its pod has ended."""
    old = await ready(scene, nodes=nodes)
    scene.world.machines.termination_seconds = 2.0
    await restart(scene)
    await restarted(scene, seconds=45)
    new = await scene.ready(WORKER_GROUP, "p", seconds=20)
    assert new["status"]["incarnation"] == old["status"]["incarnation"] + 1
    assert (new["status"].get("failures") or [], new["status"].get("restarts")) == ([], None)


async def test_a_restart_replaces_the_head_first_if_it_has_changed(scene):
    await ready(scene)
    heads = pods(scene, Component.HEAD)
    await scene.edit(RESOURCE_POOL, "p", {"env": ENV, "image": "example.test/worker:2"})
    await restart(scene)
    await restarted(scene, seconds=45)
    assert not pods(scene, Component.HEAD).keys() & heads.keys()
    every = [*pods(scene).values(), *pods(scene, Component.HEAD).values()]
    assert {env_of(pod) for pod in every} == {"2"}
    assert {pod["spec"]["containers"][0]["image"] for pod in every} == {"example.test/worker:2"}
    await scene.until(RESOURCE_POOL, "p", "UpToDate", "True")
    await scene.ready(WORKER_GROUP, "p", seconds=20)


async def test_an_operator_that_ends_during_a_restart_loses_nothing(scene):
    old = await ready(scene)
    before = pods(scene)
    await scene.edit(RESOURCE_POOL, "p", {"env": ENV})
    await restart(scene)
    for _ in range(6):
        await asyncio.sleep(0.4)
        scene.kill_operator()
        scene.start_operator()
    await restarted(scene, seconds=45)
    assert not pods(scene).keys() & before.keys()
    new = await scene.ready(WORKER_GROUP, "p", seconds=20)
    assert new["status"]["incarnation"] > old["status"]["incarnation"]
    await scene.until(RESOURCE_POOL, "p", "UpToDate", "True")


async def test_a_restart_stops_at_the_first_node_that_cannot_start(scene):
    await ready(scene)
    before, template = pods(scene), {"spec": {"containers": [{"name": "ray-worker", "image": f"{UNFIT_IMAGE}:1"}]}}
    await scene.edit(RESOURCE_POOL, "p", {"podTemplate": template})
    await restart(scene)
    said = condition(await scene.until(RESOURCE_POOL, "p", "Ready", "False", "ImageUnfit"))
    assert "0 of 3" not in said["message"]
    assert "the restart stops here" in said["message"]
    await asyncio.sleep(1)
    assert len(pods(scene).keys() & before.keys()) == 2
    await scene.edit(RESOURCE_POOL, "p", {"podTemplate": None})
    await scene.until(RESOURCE_POOL, "p", "UpToDate", "True", seconds=30)
    await scene.ready(RESOURCE_POOL, "p", seconds=30)
    assert not pods(scene).keys() & before.keys(), "the restart goes on as soon as the mistake is corrected"
    await scene.ready(WORKER_GROUP, "p", seconds=20)
    await scene.rest(1.0)


async def test_a_restart_whose_image_cannot_be_pulled_ends_nothing_and_begins_when_it_is_corrected(scene):
    old = await ready(scene)
    before, heads = pods(scene), pods(scene, Component.HEAD)
    await scene.edit(RESOURCE_POOL, "p", {"image": f"{BROKEN_IMAGE}:1"})
    await restart(scene)
    said = condition(await scene.until(RESOURCE_POOL, "p", "UpToDate", "False", "ImagePullFailed"), "UpToDate")
    assert "no pod is replaced before this has ended" in said["message"]
    assert f"cannot pull {BROKEN_IMAGE}:1" in said["message"]
    await asyncio.sleep(1)
    assert (pods(scene).keys(), pods(scene, Component.HEAD).keys()) == (before.keys(), heads.keys())
    now = await scene.get(WORKER_GROUP, "p")
    assert (condition(now)["status"], now["status"]["incarnation"]) == ("True", old["status"]["incarnation"])
    (pod,) = pods(scene, Component.IMAGE_CHECK).values()
    assert [each["image"] for each in pod["spec"]["containers"]] == [f"{BROKEN_IMAGE}:1"]
    await scene.edit(RESOURCE_POOL, "p", {"image": "example.test/worker:2"})
    await scene.until(RESOURCE_POOL, "p", "UpToDate", "True", seconds=30)
    await scene.ready(RESOURCE_POOL, "p", seconds=30)
    assert not pods(scene).keys() & before.keys()
    await scene.ready(WORKER_GROUP, "p", seconds=20)

    async def is_deleted():
        return not pods(scene, Component.IMAGE_CHECK)

    await eventually("the pod that pulled the image to be deleted", is_deleted)
    await scene.rest(1.0)


async def test_a_wrong_image_that_is_taken_back_leaves_a_restart_that_needs_none(scene):
    await ready(scene)
    await scene.edit(RESOURCE_POOL, "p", {"image": f"{BROKEN_IMAGE}:1"})
    await restart(scene)
    await scene.until(RESOURCE_POOL, "p", "UpToDate", "False", "ImagePullFailed")
    await scene.edit(RESOURCE_POOL, "p", {"image": None})
    await restarted(scene, seconds=45)
    await scene.until(RESOURCE_POOL, "p", "UpToDate", "True")
    await scene.ready(WORKER_GROUP, "p", seconds=20)
    assert not pods(scene, Component.IMAGE_CHECK)


async def _is_reported(scene, word):
    """Whether an event about the pool has the word."""
    events = await scene.api.list(kinds.EVENT, scene.namespace)
    return any(word in each.get("note", "") and each["regarding"]["name"] == "p" for each in events)


@pytest.mark.long
async def test_a_restart_whose_head_cannot_start_goes_on_when_the_image_is_corrected(scene):
    await ready(scene)
    before = pods(scene)
    await scene.edit(RESOURCE_POOL, "p", {"image": f"{UNFIT_IMAGE}:1"})
    await restart(scene)
    found = await scene.until(RESOURCE_POOL, "p", "Ready", "False", "ImageUnfit")
    assert (condition(found, "Failed")["status"], condition(found, "Progressing")["status"]) == ("True", "False")
    assert "the restart stops here: head: pod" in condition(found, "NodesReady")["message"]
    await eventually("an event", lambda: _is_reported(scene, "ImageUnfit"))
    await scene.edit(RESOURCE_POOL, "p", {"image": "example.test/worker:2"})
    await scene.until(RESOURCE_POOL, "p", "Failed", "False")
    await scene.until(RESOURCE_POOL, "p", "UpToDate", "True", seconds=30)
    await scene.ready(RESOURCE_POOL, "p", seconds=30)
    assert not pods(scene).keys() & before.keys()
    await scene.ready(WORKER_GROUP, "p", seconds=20)


async def test_a_restart_that_admission_refuses_begins_nothing(scene):
    old = await ready(scene)
    before = pods(scene)
    refused = {"podTemplate": {"spec": {"serviceAccountName": "nobody"}}, "image": "example.test/worker:2"}
    await scene.edit(RESOURCE_POOL, "p", refused)
    await restart(scene)
    said = condition(await scene.until(RESOURCE_POOL, "p", "UpToDate", "False", "PodsRefused"), "UpToDate")
    assert "no pod is replaced before" in said["message"]
    assert "nobody" in said["message"]
    await scene.rest(1.0)
    assert not pods(scene, Component.IMAGE_CHECK)
    now = await scene.get(WORKER_GROUP, "p")
    assert (condition(now)["status"], now["status"]["incarnation"]) == ("True", old["status"]["incarnation"])
    assert pods(scene).keys() == before.keys()


async def test_a_wrong_image_of_a_new_pool_is_corrected_without_a_restart(scene):
    await scene.pool("p", image=f"{BROKEN_IMAGE}:1")
    await scene.until(RESOURCE_POOL, "p", "Ready", "False", "ImagePullFailed")
    await scene.edit(RESOURCE_POOL, "p", {"image": "example.test/worker:2"})
    await scene.ready(RESOURCE_POOL, "p", seconds=30)


async def test_a_rolling_update_waits_until_no_group_has_live_ranks(scene):
    await ready(scene, updateStrategy={"type": "RollingUpdate"})
    before = pods(scene)
    await scene.edit(RESOURCE_POOL, "p", {"resources": {"requests": {"cpu": "2"}}})
    await scene.until(RESOURCE_POOL, "p", "UpToDate", "False", "OldTemplate")
    await asyncio.sleep(1)
    assert pods(scene).keys() == before.keys()
    await scene.delete(WORKER_GROUP, "p")
    await scene.until(RESOURCE_POOL, "p", "UpToDate", "True", seconds=30)
    await scene.ready(RESOURCE_POOL, "p", seconds=20)
    assert not pods(scene).keys() & before.keys()


async def test_a_restart_of_one_pool_leaves_the_others_of_its_cluster(scene):
    await scene.pool("a", clusterName="c")
    await scene.ready(RESOURCE_POOL, "a")
    await scene.pool("b", clusterName="c")
    await scene.group("a")
    await scene.group("b")
    await scene.ready(WORKER_GROUP, "a")
    old = await scene.ready(WORKER_GROUP, "b")
    before = pods(scene, cluster="c")
    await scene.edit(RESOURCE_POOL, "b", {"env": ENV})
    await restart(scene, "b")
    await restarted(scene, "b")
    after = pods(scene, cluster="c")
    assert len(after.keys() & before.keys()) == 1
    assert (await scene.get(WORKER_GROUP, "a"))["status"]["incarnation"] == 1
    assert (await scene.ready(WORKER_GROUP, "b", seconds=20))["status"]["incarnation"] > old["status"]["incarnation"]


@pytest.mark.long
async def test_a_restored_ray_cluster_is_no_reason_to_restart(scene):
    await ready(scene)
    await restart(scene)
    await restarted(scene)
    old, before = await scene.ready(WORKER_GROUP, "p", seconds=20), pods(scene)
    await scene.edit(kinds.RAY_CLUSTER, "p", {"workerGroupSpecs": []})
    await asyncio.sleep(2)
    assert pods(scene).keys() == before.keys()
    now = await scene.ready(WORKER_GROUP, "p")
    assert now["status"]["incarnation"] == old["status"]["incarnation"]


@pytest.mark.long
async def test_a_cluster_that_is_deleted_while_it_is_changed_begins_with_the_present_spec(scene):
    """The change has the old head, which waits for a restart."""
    await ready(scene)
    await scene.edit(RESOURCE_POOL, "p", {"image": "example.test/worker:2"})
    await scene.until(RESOURCE_POOL, "p", "UpToDate", "False", "OldImage")
    scene.proxy.begin_faults()
    late = scene.proxy.rule(Rule(lambda r: r.method == "PATCH" and r.plural == "rayclusters", Delay(2.0), times=1))
    await scene.edit(RESOURCE_POOL, "p", {"nodes": 4})
    await eventually("the change", lambda: late.hits)
    await scene.delete(RAY_CLUSTER, "p")
    await scene.until(RESOURCE_POOL, "p", "UpToDate", "True", seconds=30)
    await scene.ready(RESOURCE_POOL, "p", seconds=30)
    cluster = await scene.get(RAY_CLUSTER, "p")
    assert "example.test/worker:2" in str(cluster["spec"]["headGroupSpec"])
