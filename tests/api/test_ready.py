"""The whole path in a simulated world."""

from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP


async def test_a_pool_and_a_group_become_ready(scene):
    await scene.pool("p", nodes=2)
    await scene.group("p")
    pool = await scene.ready(RESOURCE_POOL, "p")
    group = await scene.ready(WORKER_GROUP, "p")
    gcs = scene.world.gcs["p"]
    assert (pool["status"]["nodes"], pool["status"]["readyNodes"]) == (2, 2)
    assert (group["status"]["worldSize"], group["status"]["readyRanks"]) == (4, 4)
    assert (group["status"]["incarnation"], group["status"]["session"]) == (1, gcs.session)
