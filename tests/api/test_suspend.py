"""Suspended and resumed: what ran ends, nothing is held, and what comes back is new."""

import asyncio
from datetime import datetime, timedelta

import pytest

from tests.simulation.api import eventually
from tests.simulation.machines import NO_SUCH_NODE
from tests.simulation.scene import condition
from workergroups_api import manifest as kinds
from workergroups_api.manifest import EVENT, POD, RESOURCE_POOL, WORKER_GROUP
from workergroups_api.names import CLUSTER_LABEL, WAKE_AT_ANNOTATION


async def suspend(scene, kind, name, *, value=True):
    await scene.edit(kind, name, {"suspend": value})


async def pods(scene):
    return await scene.api.list(POD, scene.namespace, labelSelector=CLUSTER_LABEL)


async def test_a_suspended_pool_holds_nothing_and_comes_back_with_new_ranks(scene):
    await scene.pool("p")
    await scene.group("p")
    old = await scene.ready(WORKER_GROUP, "p")
    await suspend(scene, RESOURCE_POOL, "p")
    await scene.until(RESOURCE_POOL, "p", "Suspended", "True", "Suspended", seconds=20)
    assert await pods(scene) == []
    assert await scene.api.get(kinds.RAY_CLUSTER, scene.namespace, "p") is None
    group = await scene.until(WORKER_GROUP, "p", "Ready", "False", "PoolSuspended")
    assert (condition(group, "Progressing")["reason"], group["status"].get("deadline")) == ("PoolSuspended", None)
    await scene.rest(3.0)
    scene.kill_operator()
    scene.start_operator()
    await suspend(scene, RESOURCE_POOL, "p", value=False)
    new = await scene.ready(WORKER_GROUP, "p", seconds=20)
    assert new["status"]["incarnation"] == old["status"]["incarnation"] + 1, new["status"]
    assert new["status"]["session"] != old["status"]["session"]
    pool = await scene.ready(RESOURCE_POOL, "p")
    assert (condition(pool, "Suspended")["status"], condition(pool, "Suspended")["reason"]) == ("False", "Resumed")


async def test_a_pool_that_is_created_suspended_waits_for_its_user(scene):
    await scene.pool("p", suspend=True)
    await scene.group("p")
    await scene.until(RESOURCE_POOL, "p", "Suspended", "True")
    await scene.until(WORKER_GROUP, "p", "Ready", "False", "PoolSuspended")
    assert await pods(scene) == []
    await suspend(scene, RESOURCE_POOL, "p", value=False)
    assert (await scene.ready(WORKER_GROUP, "p"))["status"]["incarnation"] == 1


@pytest.mark.parametrize("end", ["suspended", "deleted"])
async def test_pods_that_kuberay_has_forgotten_go_with_their_pool(scene, end):
    """Their group left the spec while KubeRay was creating them."""
    await scene.pool("p", clusterName="c")
    await scene.pool("q", clusterName="c")
    await scene.ready(RESOURCE_POOL, "p")
    await scene.ready(RESOURCE_POOL, "q")
    await scene.stop_operator()
    cluster = await scene.get(kinds.RAY_CLUSTER, "c")
    others = [each for each in cluster["spec"]["workerGroupSpecs"] if not each["groupName"].startswith("p-")]
    await scene.edit(kinds.RAY_CLUSTER, "c", {"workerGroupSpecs": others})
    if end == "suspended":
        await suspend(scene, RESOURCE_POOL, "p")
    else:
        await scene.delete(RESOURCE_POOL, "p")

    async def of_p():
        found = [pod["metadata"] for pod in await pods(scene)]
        return [pod["name"] for pod in found if pod["labels"].get("workergroups.dev/pool") == "p"]

    async def is_gone():
        return not await of_p()

    assert await of_p()
    scene.start_operator()
    await eventually("the forgotten pods are gone", is_gone, 20)
    await scene.ready(RESOURCE_POOL, "q", seconds=20)
    await scene.rest(2.0)
    groups = (await scene.get(kinds.RAY_CLUSTER, "c"))["spec"]["workerGroupSpecs"]
    assert [each["groupName"].split("-")[0] for each in groups] == ["q"]


async def test_on_and_off_and_on_at_once_ends_as_written_last(scene):
    await scene.pool("p")
    await scene.group("p")
    await scene.ready(WORKER_GROUP, "p")
    for value in (True, False, True, False, True):
        await suspend(scene, RESOURCE_POOL, "p", value=value)
        await asyncio.sleep(0.15)
    await scene.until(RESOURCE_POOL, "p", "Suspended", "True", seconds=60)
    await suspend(scene, RESOURCE_POOL, "p", value=False)
    await scene.ready(WORKER_GROUP, "p", seconds=60)


async def test_only_its_own_nodes_go_if_another_pool_shares_the_cluster(scene):
    await scene.pool("p", clusterName="c")
    await scene.pool("q", clusterName="c")
    await scene.group("p")
    await scene.group("q")
    old, other = await scene.ready(WORKER_GROUP, "p"), await scene.ready(WORKER_GROUP, "q")
    session = scene.world.gcs["c"].session
    await suspend(scene, RESOURCE_POOL, "p")
    await scene.until(RESOURCE_POOL, "p", "Suspended", "True", seconds=20)
    assert {rank.name.uid for rank in scene.world.live_ranks("c")} == {other["metadata"]["uid"]}
    still = await scene.get(WORKER_GROUP, "q")
    assert (condition(still)["status"], still["status"]["incarnation"]) == ("True", other["status"]["incarnation"])
    await suspend(scene, RESOURCE_POOL, "p", value=False)
    new = await scene.ready(WORKER_GROUP, "p", seconds=20)
    assert (new["status"]["session"], scene.world.gcs["c"].session) == (session, session)
    assert new["status"]["incarnation"] == old["status"]["incarnation"] + 1
    # The last pool of a cluster takes head and agent with it.
    for name in ("p", "q"):
        await suspend(scene, RESOURCE_POOL, name)
    for name in ("p", "q"):
        await scene.until(RESOURCE_POOL, name, "Suspended", "True", seconds=20)
    assert await pods(scene) == []


async def test_a_suspended_group_has_no_ranks_and_comes_back_in_the_same_pods(scene):
    await scene.pool("p")
    await scene.group("p")
    old = await scene.ready(WORKER_GROUP, "p")
    before = {pod["metadata"]["uid"] for pod in await pods(scene)}
    await suspend(scene, WORKER_GROUP, "p")
    await scene.until(WORKER_GROUP, "p", "Suspended", "True", "Suspended")
    assert scene.world.live_ranks("p") == []
    assert condition(await scene.get(RESOURCE_POOL, "p"))["status"] == "True"
    await scene.rest(3.0)
    await suspend(scene, WORKER_GROUP, "p", value=False)
    new = await scene.ready(WORKER_GROUP, "p")
    assert new["status"]["incarnation"] == old["status"]["incarnation"] + 1
    assert {pod["metadata"]["uid"] for pod in await pods(scene)} == before


async def test_a_resumed_group_waits_for_the_one_that_took_its_bundles(scene):
    await scene.pool("p", maxColocateCount=1)
    await scene.group("old", pools=[{"name": "p"}])
    await scene.ready(WORKER_GROUP, "old")
    await scene.group("new", pools=[{"name": "p"}])
    await scene.until(WORKER_GROUP, "new", "Ready", "False", "PoolFull")
    await suspend(scene, WORKER_GROUP, "old")
    taken = await scene.ready(WORKER_GROUP, "new")
    await suspend(scene, WORKER_GROUP, "old", value=False)
    await scene.until(WORKER_GROUP, "old", "Ready", "False", "PoolFull")
    scene.kill_operator()
    scene.start_operator()
    await asyncio.sleep(3)
    still = await scene.get(WORKER_GROUP, "new")
    assert (condition(still)["status"], still["status"]["incarnation"]) == ("True", taken["status"]["incarnation"])
    await scene.delete(WORKER_GROUP, "new")
    await scene.ready(WORKER_GROUP, "old")


async def test_an_operator_that_dies_while_a_pool_is_suspended_goes_on_where_it_was(scene):
    await scene.pool("p")
    await scene.group("p")
    await scene.ready(WORKER_GROUP, "p")
    await suspend(scene, RESOURCE_POOL, "p")
    scene.kill_operator()
    await asyncio.sleep(0.3)
    scene.start_operator()

    async def is_empty():
        return await pods(scene) == []

    await eventually("no pod", is_empty, 20)
    await scene.until(RESOURCE_POOL, "p", "Suspended", "True")


@pytest.mark.long
@pytest.mark.timeout(180)
async def test_a_pool_that_gets_no_nodes_gives_back_what_it_has_and_tries_again(scene):
    nowhere = {"spec": {"nodeSelector": {NO_SUCH_NODE: "yes"}}}
    await scene.pool("p", podTemplate=nowhere, onDeadline="Release", progressDeadlineSeconds=5)
    await scene.group("p", progressDeadlineSeconds=600)
    released = await scene.until(RESOURCE_POOL, "p", "Suspended", "True", "Released", seconds=25)
    assert condition(released, "Progressing")["reason"] == "ProgressDeadlineExceeded"
    assert await pods(scene) == []
    await scene.until(WORKER_GROUP, "p", "Ready", "False", "PoolNotReady")
    scene.kill_operator()
    scene.start_operator()
    await scene.edit(RESOURCE_POOL, "p", {"podTemplate": None})
    await asyncio.sleep(3)
    assert await pods(scene) == [], "its next try has not begun"
    pool = await scene.ready(RESOURCE_POOL, "p", seconds=90)
    assert condition(pool, "Suspended")["reason"] == "Resumed"
    await scene.ready(WORKER_GROUP, "p")

    async def starts_over():
        return "release" not in (await scene.get(RESOURCE_POOL, "p"))["status"]

    await eventually("the record of the tries to go", starts_over)


async def test_a_pool_that_nobody_uses_is_suspended_until_somebody_wants_it(scene):
    await scene.pool("p", idle={"afterSeconds": 3600})
    await scene.until(RESOURCE_POOL, "p", "Idle", "True", "Unused")
    scene.world.gcs["p"].drivers[:] = ["job-1"]
    await scene.until(RESOURCE_POOL, "p", "Idle", "False", "InUse")
    scene.world.gcs["p"].drivers.clear()
    await scene.until(RESOURCE_POOL, "p", "Idle", "True", "Unused")
    await scene.rest(3.0)
    await an_hour_passes(scene)
    await scene.until(RESOURCE_POOL, "p", "Suspended", "True", "Idle", seconds=20)
    assert await pods(scene) == []
    scene.kill_operator()
    scene.start_operator()
    await scene.rest(3.0)
    # A group wakes it, and keeps it awake.
    await scene.group("p")
    await scene.ready(WORKER_GROUP, "p", seconds=20)
    await scene.until(RESOURCE_POOL, "p", "Idle", "False", "InUse")
    await suspend(scene, WORKER_GROUP, "p")
    await scene.until(RESOURCE_POOL, "p", "Idle", "True", "Unused")
    await an_hour_passes(scene)
    await scene.until(RESOURCE_POOL, "p", "Suspended", "True", "Idle", seconds=20)
    # So does who submits a job, of whose driver nobody knows yet.
    await scene.annotate(RESOURCE_POOL, "p", WAKE_AT_ANNOTATION, "now")
    await scene.ready(RESOURCE_POOL, "p", seconds=20)
    assert (await scene.get(RESOURCE_POOL, "p"))["status"]["idle"]["wakeAt"] == "now"


@pytest.mark.long
async def test_a_pool_that_nobody_uses_is_deleted_once_no_group_names_it(scene):
    await scene.pool("p", idle={"afterSeconds": 3600, "action": "Delete"})
    await scene.group("p")
    await scene.ready(WORKER_GROUP, "p")
    await suspend(scene, WORKER_GROUP, "p")
    await scene.until(RESOURCE_POOL, "p", "Idle", "True", "Unused")
    await scene.rest(3.0)
    await an_hour_passes(scene)
    # The group may be resumed, so it keeps the pool; not its devices.
    await scene.until(RESOURCE_POOL, "p", "Suspended", "True", "Idle", seconds=20)
    await scene.rest(3.0)
    assert "once no group names it" in condition(await scene.get(RESOURCE_POOL, "p"), "Idle")["message"]
    assert await pods(scene) == []
    pool = await scene.get(RESOURCE_POOL, "p")
    await scene.delete(WORKER_GROUP, "p")

    async def is_deleted():
        return await scene.api.get(RESOURCE_POOL, scene.namespace, "p") is None

    await eventually("the pool to be deleted", is_deleted, 20)

    async def events():
        return [each for each in await scene.api.list(EVENT, scene.namespace) if each["reason"] == "Deleted"]

    told = await eventually("the event that tells why", events)
    assert [(each["type"], each["regarding"]["uid"]) for each in told] == [("Normal", pool["metadata"]["uid"])]
    assert "it has not been used since" in told[0]["note"]
    # The next one of its name starts from the beginning.
    await scene.pool("p", idle={"afterSeconds": 3600, "action": "Delete"})
    await scene.ready(RESOURCE_POOL, "p", seconds=20)


async def test_a_group_that_comes_in_the_last_moment_keeps_the_pool(scene):
    await scene.pool("p", idle={"afterSeconds": 3600, "action": "Delete"})
    await scene.until(RESOURCE_POOL, "p", "Idle", "True", "Unused")
    await scene.rest(3.0)
    scene.kill_operator()
    await an_hour_passes(scene)
    await scene.group("p")
    pool = await scene.get(RESOURCE_POOL, "p")
    scene.start_operator()
    await scene.ready(WORKER_GROUP, "p", seconds=20)
    assert (await scene.get(RESOURCE_POOL, "p"))["metadata"]["uid"] == pool["metadata"]["uid"]


async def an_hour_passes(scene):
    """Make the pool idle since an hour before the time at which it became so."""
    since = (await scene.get(RESOURCE_POOL, "p"))["status"]["idle"]["since"]
    earlier = datetime.fromisoformat(since) - timedelta(hours=1)
    status = {"idle": {"since": earlier.isoformat()}}
    await scene.api.merge(RESOURCE_POOL, scene.namespace, "p", {"status": status}, subresource="status")
