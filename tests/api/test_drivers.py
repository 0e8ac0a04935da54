"""Drivers end with Ray's head and do not come back with it. The pool reports that until another one connects."""

from tests.simulation.api import eventually
from tests.simulation.scene import condition
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP, Kind

EVENT = Kind("events.k8s.io/v1", "Event", "events")


async def connect(scene, *jobs):
    """Connect these drivers, and end the others; return when the pool reports them."""
    scene.world.gcs["p"].drivers[:] = jobs
    return await says(scene, lambda drivers: tuple(drivers.get("jobs", ())) == jobs)


async def says(scene, expected):
    async def holds():
        drivers = (await scene.get(RESOURCE_POOL, "p"))["status"].get("drivers")
        return drivers if drivers is not None and expected(drivers) else None

    return await eventually("the pool's drivers", holds)


async def lose_head(scene):
    session = scene.world.gcs["p"].session
    scene.world.restart_head("p")

    async def is_other():
        gcs = scene.world.gcs.get("p")
        return gcs is not None and gcs.session != session

    await eventually("the next session", is_other)


async def events_of_loss(scene):
    return [event for event in await scene.api.list(EVENT, scene.namespace) if event["reason"] == "DriversLost"]


async def pool_and_group(scene):
    await scene.pool("p", nodes=2)
    await scene.group("p")
    await scene.ready(RESOURCE_POOL, "p")
    await scene.ready(WORKER_GROUP, "p")


async def test_drivers_are_counted_and_at_rest_nothing_is_written(scene):
    await pool_and_group(scene)
    assert (await says(scene, lambda drivers: True))["running"] == 0
    drivers = await connect(scene, "ppo-1", "ppo-2")
    assert (drivers["running"], drivers["session"]) == (2, scene.world.gcs["p"].session)
    await scene.rest(quiet=1.0)
    assert (await connect(scene))["running"] == 0
    assert (await scene.condition(RESOURCE_POOL, "p"))["reason"] == "Reserved"


async def test_a_pool_that_lost_its_head_and_its_driver_is_ready_again_and_says_that_nothing_runs(scene):
    await pool_and_group(scene)
    await connect(scene, "ppo-1")
    await lose_head(scene)
    pool = await scene.until(RESOURCE_POOL, "p", "Ready", "True", "DriversLost")
    assert "with 1 driver (ppo-1), and none has connected since" in condition(pool)["message"]
    (event,) = await events_of_loss(scene)
    assert (event["type"], event["note"]) == ("Warning", condition(pool)["message"])
    await scene.ready(WORKER_GROUP, "p")
    await scene.rest(quiet=1.0)
    await connect(scene, "ppo-2")
    await scene.until(RESOURCE_POOL, "p", "Ready", "True", "Reserved")
    assert len(await events_of_loss(scene)) == 1


async def test_an_operator_that_was_away_when_the_head_was_lost_says_so_too(scene):
    await pool_and_group(scene)
    await connect(scene, "ppo-1")
    scene.kill_operator()
    await lose_head(scene)
    scene.start_operator()
    await scene.until(RESOURCE_POOL, "p", "Ready", "True", "DriversLost")
    scene.kill_operator()
    scene.start_operator()
    await scene.ready(WORKER_GROUP, "p")
    assert (await scene.condition(RESOURCE_POOL, "p"))["reason"] == "DriversLost"
    assert len(await events_of_loss(scene)) == 1


async def test_a_driver_that_ends_before_its_head_is_not_lost(scene):
    await pool_and_group(scene)
    await connect(scene, "ppo-1")
    await connect(scene)
    await lose_head(scene)
    await scene.ready(WORKER_GROUP, "p")
    await scene.until(RESOURCE_POOL, "p", "Ready", "True", "Reserved")
    assert await events_of_loss(scene) == []
