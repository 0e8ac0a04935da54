"""The whole path in a simulated world."""

from tests.simulation.scene import condition
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


async def test_a_pool_without_reservations_is_ready_with_its_nodes(scene):
    await scene.pool("p", nodes=2, reservation="None")
    await scene.group("p")
    pool = await scene.ready(RESOURCE_POOL, "p")
    assert (pool["status"]["readyNodes"], scene.world.gcs["p"].placements) == (2, {})
    said = await scene.until(WORKER_GROUP, "p", "Ready", "False", "PoolNotReserved")
    assert "use a pool with reservation: Eager" in condition(said)["message"]
