"""Progressing tells how long an object has waited, and Ready what for."""

from tests.simulation.machines import NO_SUCH_NODE
from tests.simulation.monitor import SLACK_SECONDS
from tests.simulation.scene import condition
from tests.simulation.story import MISSING_CLASS
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP

NOWHERE = {"spec": {"nodeSelector": {NO_SUCH_NODE: "yes"}}}


def progress(body):
    found = condition(body, "Progressing")
    return found["status"], found["reason"], found["lastTransitionTime"]


async def test_a_deadline_that_passes_is_reported_within_a_second_and_the_operator_keeps_trying(scene):
    await scene.pool("p", podTemplate=NOWHERE, progressDeadlineSeconds=5)
    await scene.until(RESOURCE_POOL, "p", "Progressing", "True", "WaitingForReady")
    waits = await scene.until(RESOURCE_POOL, "p", "Ready", "False", "NoMatchingNode")
    late = await scene.until(RESOURCE_POOL, "p", "Progressing", "False", seconds=5 + 1 + SLACK_SECONDS)
    assert progress(late)[1] == "ProgressDeadlineExceeded"
    assert condition(late) == condition(waits)
    assert condition(late)["message"] in condition(late, "Progressing")["message"]
    await scene.rest(quiet=2)
    await scene.edit(RESOURCE_POOL, "p", {"podTemplate": None})
    ready = await scene.ready(RESOURCE_POOL, "p")
    assert progress(ready)[:2] == ("True", "BecameReady")
    assert "deadline" not in ready["status"]


async def test_with_a_lost_agent_a_group_waits_again_and_its_progress_does_not_turn(scene):
    await scene.pool("p")
    await scene.group("p")
    ready = await scene.ready(WORKER_GROUP, "p")
    scene.world.frozen.add("p")
    lost = await scene.until(WORKER_GROUP, "p", "Ready", "Unknown", seconds=15 + SLACK_SECONDS)
    assert progress(lost) == ("True", "WaitingForReady", progress(ready)[2])
    assert lost["status"]["deadline"]
    scene.world.frozen.clear()
    assert progress(await scene.ready(WORKER_GROUP, "p")) == progress(ready)


async def test_what_waiting_cannot_help_ends_the_progress_at_once(scene):
    await scene.pool("p")
    await scene.group("p", worker={"class": MISSING_CLASS})
    failed = await scene.until(WORKER_GROUP, "p", "Progressing", "False", "LaunchFailed")
    assert condition(failed)["reason"] == "LaunchFailed"
    await scene.edit(WORKER_GROUP, "p", {"worker": {"class": "train.Trainer"}})
    assert progress(await scene.ready(WORKER_GROUP, "p"))[:2] == ("True", "BecameReady")
