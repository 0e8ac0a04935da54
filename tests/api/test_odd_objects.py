"""Whatever a legal object contains, it alone reports the reason; its neighbours are served, and their statuses true."""

import pytest

from simulation.monitor import SLACK_SECONDS
from simulation.scene import condition
from workergroups_api.manifest import WORKER_GROUP

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
    await scene.group("good", pools=[{"name": "a-good"}])
    await scene.ready(WORKER_GROUP, "good", seconds=20)


async def is_served(scene):
    """A dead rank of the neighbour shows within the bound, and a new group on its pool becomes ready."""
    await scene.group("later", pools=[{"name": "a-good"}])
    await scene.ready(WORKER_GROUP, "later", seconds=20)
    live = scene.world.live_ranks("shared")
    scene.world.kill_rank("shared", next(rank for rank in live if rank.name.group == "good"))
    await scene.until(WORKER_GROUP, "good", "Ready", "False", "ProcessDied", seconds=BOUND)


@pytest.mark.parametrize(
    "worker",
    [{"args": [lists(300)]}, {"kwargs": {"a": objects(300)}}],
    ids=["deep lists", "deep objects"],
)
async def test_an_odd_group_reports_it_and_its_neighbours_are_served(scene, worker):
    await neighbour(scene)
    await scene.group("odd", pools=[{"name": "a-good"}], worker={"class": "train.Trainer"} | worker)
    odd = await scene.until(WORKER_GROUP, "odd", "Ready", "False", seconds=BOUND)
    assert condition(odd)["reason"] in ("InvalidSpec", "InternalError")
    await is_served(scene)
