"""`kubectl scale resourcepool`: nodes come and go, and ranks that run stay where they are."""

import asyncio
from http import HTTPStatus

import pytest

from tests.simulation.api import ApiError, eventually, path_of
from tests.simulation.machines import NO_SUCH_NODE
from tests.simulation.scene import condition
from workergroups_api import manifest as kinds
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP
from workergroups_api.names import RESTARTED_AT_ANNOTATION
from workergroups_api.vocabulary import Component


async def scale(scene, nodes, name="p"):
    """Write the scale subresource as `kubectl scale` does, which tries again after each conflict."""
    path = path_of(RESOURCE_POOL, scene.namespace, name) + "/scale"

    async def is_written():
        present = await scene.api.request("GET", path)
        try:
            await scene.api.request("PUT", path, present | {"spec": {"replicas": nodes}})
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            return False
        return True

    await eventually("no conflict", is_written)


async def scale_of(scene, name="p"):
    return await scene.api.request("GET", path_of(RESOURCE_POOL, scene.namespace, name) + "/scale")


async def of_size(scene, nodes, name="p"):
    """Wait until the pool is ready with exactly this number of nodes and pods; return it."""

    async def holds():
        pool = await scene.get(RESOURCE_POOL, name)
        status = pool["status"]
        sizes = {status["nodes"], status.get("readyNodes"), len(scene.world.pods(name, Component.WORKER))}
        is_so = condition(pool)["status"] == condition(pool, "UpToDate")["status"] == "True"
        return (
            pool
            if is_so and sizes == {nodes} and status["observedGeneration"] == pool["metadata"]["generation"]
            else None
        )

    try:
        return await eventually(f"{nodes} nodes", holds, 60)
    except AssertionError as error:
        raise AssertionError(f"{error}: {(await scene.get(RESOURCE_POOL, name))['status']}") from None


def pods(scene, name="p"):
    return {pod["metadata"]["name"] for pod in scene.world.pods(name, Component.WORKER)}


def ranks(scene, name="p"):
    """The pods of the living ranks, by group, incarnation and rank."""
    return {(rank.name.group, rank.name.incarnation, rank.name.rank): rank.pod for rank in scene.world.live_ranks(name)}


async def first_incarnation_stays(scene, name):
    group = await scene.get(WORKER_GROUP, name)
    assert (group["status"]["incarnation"], condition(group)["status"]) == (1, "True")


async def test_a_pool_that_grows_keeps_its_pods_and_ranks(scene):
    await scene.pool("p", nodes=1)
    await scene.group("whole", pools=[{"name": "p"}])
    await scene.group("half", pools=[{"name": "p", "bundles": {"start": 1, "count": 1}}])
    for name in ("whole", "half"):
        await scene.ready(WORKER_GROUP, name)
    before, old_pods = ranks(scene), pods(scene)
    assert (await scale_of(scene))["status"]["selector"] == (
        "workergroups.dev/cluster=p,workergroups.dev/pool=p,workergroups.dev/component=worker"
    )
    await scale(scene, 3)
    await of_size(scene, 3)
    assert (ranks(scene), pods(scene) >= old_pods) == (before, True)
    for name in ("whole", "half"):
        await first_incarnation_stays(scene, name)
    said = await scene.until(WORKER_GROUP, "whole", "UpToDate", "False", "OldSize")
    assert "spec.nodes of pool p is 3, and the ranks run on 1" in condition(said, "UpToDate")["message"]
    restart = {"metadata": {"annotations": {RESTARTED_AT_ANNOTATION: "now"}}}
    await scene.api.merge(WORKER_GROUP, scene.namespace, "whole", restart)
    await scene.until(WORKER_GROUP, "whole", "UpToDate", "True")
    await scene.ready(WORKER_GROUP, "whole")
    assert len([key for key in ranks(scene) if key[:2] == ("whole", 2)]) == 6
    await first_incarnation_stays(scene, "half")


async def test_a_group_that_follows_waits_for_the_bundles_of_new_nodes(scene):
    await scene.pool("p", nodes=1)
    await scene.group("p", resize="Follow")
    await scene.ready(WORKER_GROUP, "p")
    before = ranks(scene)
    scene.world.machines.free_nodes = 0
    await scale(scene, 3)
    await scene.until(RESOURCE_POOL, "p", "Ready", "False", "InsufficientResources")
    await scene.rest(quiet=1)
    await first_incarnation_stays(scene, "p")
    said = await scene.until(WORKER_GROUP, "p", "UpToDate", "False", "OldSize")
    assert (
        "the ranks are recreated when the bundles of all nodes are reserved" in condition(said, "UpToDate")["message"]
    )
    await scale(scene, 1)
    await of_size(scene, 1)
    assert ranks(scene) == before


async def test_a_lost_node_is_replaced_while_the_nodes_that_the_pool_grows_by_do_not_come(scene):
    await scene.pool("p", nodes=1)
    await scene.group("p")
    await scene.ready(WORKER_GROUP, "p")
    scene.world.machines.free_nodes = 0
    await scale(scene, 2)
    await scene.until(RESOURCE_POOL, "p", "Ready", "False", "InsufficientResources")
    (old,) = [pod for pod in scene.world.pods("p", Component.WORKER) if pod["status"]["phase"] == "Running"]
    await scene.world.delete_pod(old, at_once=True)
    await scene.until(WORKER_GROUP, "p", "Ready", "False")
    # One node can be had; KubeRay has two pods that wait for one.
    scene.world.machines.free_nodes = 1
    await scene.annotate(WORKER_GROUP, "p", RESTARTED_AT_ANNOTATION, "now")
    await scene.ready(WORKER_GROUP, "p", seconds=60)
    assert len(ranks(scene)) == 2


async def test_a_group_that_follows_gets_all_nodes(scene):
    await scene.pool("p", nodes=1)
    await scene.group("p", resize="Follow")
    await scene.ready(WORKER_GROUP, "p")
    await scale(scene, 2)
    await of_size(scene, 2)

    async def has_all():
        return [key[:2] for key in ranks(scene)] == [("p", 2)] * 4

    await eventually("four ranks of incarnation 2", has_all, 10)
    await scale(scene, 1)
    await of_size(scene, 1)
    group = await scene.ready(WORKER_GROUP, "p")
    assert (group["status"]["incarnation"], group["status"]["worldSize"]) == (3, 2)


async def test_a_node_with_ranks_stays_until_their_group_leaves(scene):
    await scene.pool("p", nodes=3)
    await scene.group("first", pools=[{"name": "p", "bundles": {"count": 2}}])
    await scene.group("second", pools=[{"name": "p", "bundles": {"start": 3, "count": 1}}])
    for name in ("first", "second"):
        await scene.ready(WORKER_GROUP, name)
    before = ranks(scene)
    await scale(scene, 1)
    said = await scene.until(RESOURCE_POOL, "p", "UpToDate", "False", "Shrinking")
    assert said["status"]["victims"] == [{"group": "second", "nodes": "1"}]

    async def has_two():
        return (await scene.get(RESOURCE_POOL, "p"))["status"]["nodes"] == 2 == len(pods(scene))

    await eventually("the last node to go", has_two, 60)
    assert ranks(scene) == before
    await scene.rest(quiet=1)
    await scene.group("late", pools=[{"name": "p", "bundles": {"start": 2, "count": 1}}])
    await scene.until(WORKER_GROUP, "late", "PoolsReady", "False", "BundlesOutsidePool")
    await scene.delete(WORKER_GROUP, "second")
    pool = await of_size(scene, 1)
    assert "victims" not in pool["status"]
    await first_incarnation_stays(scene, "first")
    assert ranks(scene) == {key: pod for key, pod in before.items() if key[0] == "first"}


async def test_there_and_back_again_with_an_operator_that_is_killed(scene):
    await scene.pool("p", nodes=3)
    await scene.group("p", pools=[{"name": "p", "bundles": {"count": 2}}])
    await scene.ready(WORKER_GROUP, "p")
    before = ranks(scene)
    for nodes in (1, 3, 2, 1, 2):
        await scale(scene, nodes)
        await asyncio.sleep(0.3)
        scene.kill_operator()
        scene.start_operator()
    await of_size(scene, 2)
    assert ranks(scene) == before
    await first_incarnation_stays(scene, "p")
    await scene.rest(quiet=1)


async def test_a_node_that_never_came_can_be_given_up(scene):
    await scene.pool("p", nodes=2, podTemplate={"spec": {"nodeSelector": {NO_SUCH_NODE: "yes"}}})
    await scene.until(RESOURCE_POOL, "p", "Ready", "False", "NoMatchingNode")
    await scale(scene, 1)

    async def has_one():
        return len(pods(scene)) == 1

    await eventually("one pod to go", has_one, 60)


async def test_a_pool_that_reserves_nothing_scales(scene):
    await scene.pool("p", nodes=1, reservation="None")
    await scene.ready(RESOURCE_POOL, "p")
    for nodes in (3, 2):
        await scale(scene, nodes)
        await of_size(scene, nodes)
    names = [each["metadata"]["name"] for each in await scene.api.list(kinds.RAY_CLUSTER, scene.namespace)]
    assert names == ["p"]


@pytest.mark.parametrize(("nodes", "words"), [(0, "greater than or equal to 1"), (513, "less than or equal to 512")])
async def test_sizes_have_limits(scene, nodes, words):
    await scene.pool("p")
    with pytest.raises(Exception, match=words):
        await scale(scene, nodes)
