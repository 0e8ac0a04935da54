"""`spec.preflight`: a pool is ready, and its groups are launched, when its nodes have what the spec asks for."""

from tests.simulation.api import eventually
from tests.simulation.scene import condition
from workergroups_api.manifest import POD, RESOURCE_POOL, WORKER_GROUP
from workergroups_api.vocabulary import Component


async def gcs_of(scene, name="p"):
    async def is_running():
        return scene.world.gcs.get(name)

    return await eventually("a Ray head", is_running, 20)


async def test_a_pool_and_its_groups_wait_for_a_node_that_has_not_what_it_should(scene):
    await scene.pool("p", nodes=2, preflight="Basic")
    gcs = await gcs_of(scene)
    gcs.unfit = _Every("volumes: it cannot write to /data")
    await scene.group("p")
    pool = await scene.until(RESOURCE_POOL, "p", "Ready", "False", "PreflightFailed", seconds=20)
    assert condition(pool, "BundlesReserved")["status"] == "True"
    assert "p-" in condition(pool)["message"]
    assert "it cannot write to /data" in condition(pool)["message"]

    async def says_what_it_waits_for():
        why = await scene.condition(WORKER_GROUP, "p")
        return why.get("reason") == "WaitingForPools" and "pool p has not passed its preflight" in why["message"]

    await eventually("the group waits for the preflight", says_what_it_waits_for, 10)
    gcs.unfit = {}
    await scene.ready(RESOURCE_POOL, "p")
    assert condition(await scene.get(RESOURCE_POOL, "p"), "PreflightPassed")["reason"] == "PreflightPassed"
    await scene.ready(WORKER_GROUP, "p")


async def test_without_the_wish_a_pool_is_ready_with_what_it_has(scene):
    await scene.pool("p", preflight="Fabric")
    (await gcs_of(scene)).unfit = _Every("all-reduce: too late")
    await scene.group("p")
    await scene.until(RESOURCE_POOL, "p", "Ready", "False", "PreflightFailed", seconds=20)
    await scene.edit(RESOURCE_POOL, "p", {"preflight": "None"})
    pool = await scene.ready(RESOURCE_POOL, "p")
    assert condition(pool, "PreflightPassed") == {}
    await scene.ready(WORKER_GROUP, "p")


async def test_a_node_that_replaces_another_is_checked_before_ranks_run_there(scene):
    await scene.pool("p", nodes=2, preflight="Basic")
    await scene.group("p")
    await scene.ready(WORKER_GROUP, "p", seconds=20)
    gcs = await gcs_of(scene)
    pods = {pod["metadata"]["name"] for pod in scene.world.pods("p", Component.WORKER)}
    gcs.unfit = _Every("devices: 7 of 8", besides=pods)
    await scene.delete(POD, min(pods))
    await scene.until(RESOURCE_POOL, "p", "Ready", "False", "PreflightFailed", seconds=20)
    await scene.until(WORKER_GROUP, "p", "RanksCreated", "False", "WaitingForPools")
    gcs.unfit = {}
    await scene.ready(RESOURCE_POOL, "p")
    group = await scene.ready(WORKER_GROUP, "p", seconds=20)
    assert group["status"]["incarnation"] == 2


class _Every(dict):
    """Something is wrong with the nodes of all pods, besides some."""

    def __init__(self, why, besides=()):
        super().__init__()
        self._why, self._besides = why, besides

    def __contains__(self, pod):
        return pod not in self._besides

    def __getitem__(self, pod):
        return self._why
