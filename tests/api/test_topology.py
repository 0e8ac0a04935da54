"""`spec.topology`: the nodes of a pool are numbered along it, so that neighbouring ranks are in one domain."""

from tests.simulation.faults import Refuse, Rule
from tests.simulation.nodes import NODES, RACK
from tests.simulation.scene import condition
from workergroups_api.manifest import NODE, POD, RESOURCE_POOL, WORKER_GROUP
from workergroups_api.vocabulary import Component
from workergroups_common.ranges import expanded

ALONG_RACKS = {"topology": {"key": RACK}}


async def racks(scene):
    """The racks of the pool's nodes, in their order; z for none."""
    pool = await scene.get(RESOURCE_POOL, "p")
    pods = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in scene.world.pods("p", Component.WORKER)}
    return [NODES[pods[pod]].get(RACK, "z") for pod in expanded(pool["status"]["reservation"]["pods"])]


async def test_the_nodes_of_a_rack_are_adjacent(scene):
    await scene.pool("p", nodes=12, **ALONG_RACKS)
    await scene.group("p")
    await scene.ready(RESOURCE_POOL, "p", seconds=30)
    assert await racks(scene) == sorted(await racks(scene))
    await scene.ready(WORKER_GROUP, "p", seconds=30)


async def test_a_node_that_is_replaced_changes_no_other_number(scene):
    await scene.pool("p", nodes=3, **ALONG_RACKS)
    before = expanded((await scene.ready(RESOURCE_POOL, "p", seconds=30))["status"]["reservation"]["pods"])
    with scene.world.machines.full():
        await scene.delete(POD, before[1])
        await scene.until(RESOURCE_POOL, "p", "Ready", "False")
    after = expanded((await scene.ready(RESOURCE_POOL, "p", seconds=30))["status"]["reservation"]["pods"])
    assert (after[0], after[2]) == (before[0], before[2])
    assert after[1] != before[1]


async def test_without_the_right_to_read_nodes_the_names_of_the_pods_decide_and_the_status_says_so(scene):
    forbidden = Refuse(403, "Forbidden", 'nodes "node-1" is forbidden')
    scene.proxy.rule(Rule(lambda request: request.plural == NODE.plural, forbidden, times=10**6))
    await scene.pool("p", nodes=3, **ALONG_RACKS)
    pool = await scene.ready(RESOURCE_POOL, "p", seconds=30)
    pods = expanded(pool["status"]["reservation"]["pods"])
    assert pods == sorted(pods)
    message = condition(pool, "BundlesReserved")["message"]
    assert f"nodes are numbered by their pods' names, not by {RACK}: " in message
    assert "is forbidden" in message
