"""Groups that run a method: complete, failed, too late, run again, and deleted when their time is over."""

from tests.simulation.api import eventually
from tests.simulation.scene import NEVER_RESTARTED, condition
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP
from workergroups_api.names import RESTARTED_AT_ANNOTATION

RUN = {"method": "train", "kwargs": {"steps": 3, "nothing": None}}


async def running(scene, **spec):
    """Create a pool and a group, and wait until the method has begun on both ranks."""
    await scene.pool("p", maxColocateCount=1)
    await scene.group("p", run=RUN, **spec)
    return await begun(scene)


async def begun(scene, incarnation=1):
    found = {}

    async def has_begun():
        nonlocal found
        found = await scene.get(WORKER_GROUP, "p")
        status = found.get("status", {})
        is_told = "has begun on 2 of 2 ranks" in condition(found, "Complete").get("message", "")
        return is_told and status["incarnation"] == incarnation

    await eventually("the method begins on all ranks", has_begun, 20)
    return found


def end(scene, *errors):
    """Let the method return on the ranks, or raise."""
    ranks = sorted(scene.world.live_ranks("p"), key=lambda rank: rank.name.rank)
    for rank, error in zip(ranks, errors, strict=True):
        scene.world.gcs["p"].end_run(rank, error)


async def no_ranks(scene):
    async def is_so():
        return not scene.world.live_ranks("p")

    await eventually("the ranks end", is_so)


async def test_a_complete_group_has_no_ranks_stays_complete_and_leaves_its_bundles_to_others(scene):
    group = await running(scene)
    assert (condition(group)["reason"], condition(group, "Complete")["status"]) == ("RanksReady", "False")
    await scene.group("other", pools=[{"name": "p"}])
    await scene.until(WORKER_GROUP, "other", "Ready", "False", "PoolFull")
    end(scene, None, None)
    found = await scene.until(WORKER_GROUP, "p", "Complete", "True", "Complete")
    assert (condition(found)["status"], condition(found)["reason"]) == ("True", "Complete")
    assert condition(found, "Failed")["status"] == "False"
    await scene.ready(WORKER_GROUP, "other", seconds=20)
    assert {rank.name.group for rank in scene.world.live_ranks("p")} == {"other"}
    # Neither a restart of the operator nor the loss of the head runs it again.
    scene.kill_operator()
    scene.start_operator()
    scene.world.restart_head("p")

    async def other_is_ready_again():
        other = await scene.get(WORKER_GROUP, "other")
        return other["status"]["incarnation"] == 2 and condition(other)["status"] == "True"

    await eventually("the other group has new ranks", other_is_ready_again, 30)
    found = await scene.get(WORKER_GROUP, "p")
    assert (condition(found, "Complete")["status"], found["status"]["incarnation"]) == ("True", 1)
    assert {rank.name.group for rank in scene.world.live_ranks("p")} == {"other"}
    await scene.delete(WORKER_GROUP, "other")
    await scene.annotate(WORKER_GROUP, "p", RESTARTED_AT_ANNOTATION, "now")
    again = await begun(scene, incarnation=2)
    assert again["status"]["run"]["startTime"] > found["status"]["run"]["startTime"]


async def test_an_exception_restarts_the_group_and_the_method_runs_again(scene):
    await running(scene)
    end(scene, None, "ValueError: nan")
    found = await begun(scene, incarnation=2)
    assert [(each["rank"], each["reason"]) for each in found["status"]["failures"]] == [(1, "RunFailed")]
    end(scene, None, None)
    await scene.until(WORKER_GROUP, "p", "Complete", "True")


async def test_an_exception_that_nothing_may_be_restarted_for_fails_the_group_which_then_is_deleted(scene):
    await running(scene, ttlSecondsAfterFinished=2, **NEVER_RESTARTED)
    end(scene, None, "ValueError: nan")
    found = await scene.until(WORKER_GROUP, "p", "Failed", "True", "RunFailed")
    assert "ValueError: nan" in condition(found, "Failed")["message"]
    await gone(scene)


async def test_a_complete_group_is_deleted_when_its_time_is_over(scene):
    await running(scene, ttlSecondsAfterFinished=3)
    end(scene, None, None)
    await scene.until(WORKER_GROUP, "p", "Complete", "True")
    await no_ranks(scene)
    await gone(scene)
    await scene.ready(RESOURCE_POOL, "p")


async def gone(scene):
    async def is_so():
        return await scene.api.get(WORKER_GROUP, scene.namespace, "p") is None

    await eventually("the group is deleted", is_so, 15)


async def test_a_run_that_takes_too_long_fails_and_its_ranks_end(scene):
    await running(scene, activeDeadlineSeconds=8)
    found = await scene.until(WORKER_GROUP, "p", "Failed", "True", "DeadlineExceeded", seconds=20)
    assert condition(found, "Complete")["status"] == condition(found)["status"] == "False"
    await no_ranks(scene)
