"""What only looks like an object of a cluster changes nothing: owners' UIDs tell objects apart."""

import asyncio
import os
import signal
import time
from contextlib import contextmanager

import pytest

from tests.simulation.api import eventually
from tests.simulation.scene import condition
from workergroups_api import manifest as kinds
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP
from workergroups_api.names import CLUSTER_LABEL, COMPONENT_LABEL

CONTROLLER = {"head": kinds.RAY_CLUSTER, "worker": kinds.RAY_CLUSTER, "agent": kinds.REPLICA_SET}


async def ready(scene):
    await scene.pool("p")
    await scene.group("p")
    await scene.ready(RESOURCE_POOL, "p")
    return await scene.ready(WORKER_GROUP, "p")


def copied(pod, name, owners=()):
    """Copy a pod as `kubectl debug POD --copy-to=NAME --keep-labels` does."""
    metadata = pod["metadata"]
    spec = {key: value for key, value in pod["spec"].items() if key not in ("nodeName", "priority")}
    kept = {key: metadata[key] for key in ("namespace", "labels", "annotations") if key in metadata}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**kept, "name": name, "ownerReferences": list(owners)},
        "spec": spec,
    }


@contextmanager
def stopped(process):
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


async def truth(scene):
    """Return all conditions of pool and group, with the times of their changes."""
    found = [await scene.get(kind, "p") for kind in (RESOURCE_POOL, WORKER_GROUP)]
    return [
        [
            (each["type"], each["status"], each["reason"], each["lastTransitionTime"])
            for each in body["status"]["conditions"]
        ]
        for body in found
    ]


async def stays(scene, before, seconds):
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        assert await truth(scene) == before
        await asyncio.sleep(0.1)


def pods_of(scene):
    """Return the UIDs of the pods, before a copy is created."""
    return {pod["metadata"]["uid"] for name in ("head", "worker", "agent") for pod in scene.world.pods("p", name)}


async def deleted_nodes(scene):
    """Return the nodes that the operator tells KubeRay to delete."""
    cluster = await scene.get(kinds.RAY_CLUSTER, "p")
    return cluster["spec"]["workerGroupSpecs"][0].get("scaleStrategy", {}).get("workersToDelete", [])


async def copy_node(scene, access, pod):
    """Create a copy of a node's pod, and let KubeRay look when the operator has ordered to delete it."""

    async def is_named():
        return await deleted_nodes(scene) == ["a-copy"]

    with stopped(access.processes["ray-operator"]):
        await scene.api.create(copied(pod, "a-copy"))
        await eventually("the order to delete the copy", is_named)


# About a node's, see below.
@pytest.mark.parametrize("component", ["head", "agent"])
async def test_a_copy_of_a_pod_with_its_labels_changes_nothing(scene, component):
    old = await ready(scene)
    before, own = await truth(scene), pods_of(scene)
    (pod,) = scene.world.pods("p", component)
    await scene.api.create(copied(pod, "a-copy"))
    await stays(scene, before, seconds=4)
    assert own <= pods_of(scene)
    await scene.edit(WORKER_GROUP, "p", {"worker": {"class": "train.Other"}})
    await eventually("the next incarnation", lambda: serves(scene, old["status"]["incarnation"] + 1))


async def serves(scene, incarnation):
    found = await scene.get(WORKER_GROUP, "p")
    return found["status"]["incarnation"] == incarnation and condition(found)["status"] == "True"


@pytest.mark.parametrize("component", ["head", "worker", "agent"])
async def test_a_pod_that_only_claims_an_owner_changes_nothing(scene, component):
    await ready(scene)
    before, own = await truth(scene), pods_of(scene)
    (pod,) = scene.world.pods("p", component)
    kind = CONTROLLER[component]
    (real,) = pod["metadata"]["ownerReferences"]
    claims = {"apiVersion": kind.api_version, "kind": kind.kind, "name": real["name"]}
    # The garbage collector deletes the first; the second is a dependent that the real owner does not control.
    for name, owner in (("a", {"uid": "00000000-aaaa", "controller": True}), ("b", {"uid": real["uid"]})):
        claim = copied(pod, name, [claims | owner])
        # KubeRay counts pods by its own label, and deletes any one of the surplus pods.
        claim["metadata"]["labels"] = {CLUSTER_LABEL: "p", COMPONENT_LABEL: component}
        await scene.api.create(claim)
    await stays(scene, before, seconds=4)
    assert own <= pods_of(scene)


async def test_a_copy_of_the_agent_next_to_it_changes_nothing(scene, access):
    await ready(scene)
    before = await truth(scene)
    (pod,) = scene.world.pods("p", "agent")
    with stopped(access.processes["kube-controller-manager"]):
        await scene.api.create(copied(pod, "a-copy"))
        await eventually("the copy to run", lambda: agents(scene, 2))
        await stays(scene, before, seconds=4)
    await eventually("one of the two to go", lambda: agents(scene, 1))
    await stays(scene, before, seconds=2)


async def test_a_copy_of_the_agent_serves_where_the_first_had_to_go(scene):
    old = await ready(scene)
    (pod,) = scene.world.pods("p", "agent")
    copy, adopted = copied(pod, "a-copy"), pod["metadata"]["labels"]
    copy["metadata"]["labels"] = {name: value for name, value in adopted.items() if name != "pod-template-hash"}
    await scene.api.create(copy)
    await eventually("the copy to run", lambda: is_ready(scene, copy))
    # Of two pods, a ReplicaSet keeps the one that is ready.
    scene.world.machines.restart(pod["metadata"]["uid"], seconds=60)
    await eventually("the first to be unready", lambda: is_unready(scene, pod))
    await scene.api.merge(kinds.POD, scene.namespace, "a-copy", {"metadata": {"labels": adopted}})

    async def is_gone():
        return await scene.api.get(kinds.POD, scene.namespace, pod["metadata"]["name"]) is None

    await eventually("the first to go", is_gone)
    await scene.edit(WORKER_GROUP, "p", {"worker": {"class": "train.Other"}})
    await eventually("the next incarnation", lambda: serves(scene, old["status"]["incarnation"] + 1))
    assert [each["metadata"]["name"] for each in scene.world.pods("p", "agent")] == ["a-copy"]


async def is_ready(scene, pod):
    found = await scene.api.get(kinds.POD, scene.namespace, pod["metadata"]["name"])
    return condition(found).get("status") == "True"


async def is_unready(scene, pod):
    return not await is_ready(scene, pod)


async def agents(scene, count):
    return len(scene.world.agents) == count


async def test_a_copy_of_a_node_is_deleted_instead_of_a_node(scene, access):
    """KubeRay counts pods by their labels, and deletes a surplus one: the one that the operator names.

    It chooses itself if it sees the copy before the order. It has a watch for each, so that happens on a busy machine.
    """
    await ready(scene)

    async def is_gone():
        return await scene.api.get(kinds.POD, scene.namespace, "a-copy") is None

    async def is_forgotten():
        return not await deleted_nodes(scene)

    for _ in range(3):
        await scene.ready(WORKER_GROUP, "p", seconds=30)
        before, (pod,) = await truth(scene), scene.world.pods("p", "worker")
        await copy_node(scene, access, pod)
        await eventually("the copy to go", is_gone, 30)
        await eventually("the order to be withdrawn", is_forgotten, 20)
        if [each["metadata"]["uid"] for each in scene.world.pods("p", "worker")] == [pod["metadata"]["uid"]]:
            break
    else:
        pytest.fail("KubeRay deleted the node three times")
    await stays(scene, before, seconds=4)


async def test_other_objects_with_the_label_change_nothing(scene):
    await ready(scene)
    before = await truth(scene)
    for kind in (kinds.CONFIG_MAP, kinds.SERVICE_ACCOUNT, kinds.ROLE, kinds.SECRET):
        await scene.api.create(labelled(scene, kind))
    service = labelled(scene, kinds.SERVICE) | {"spec": {"ports": [{"port": 80}]}}
    await scene.api.create(service)
    await stays(scene, before, seconds=2)


async def test_a_foreign_lease_with_the_label_is_no_sign_of_life(scene):
    await ready(scene)
    before = await truth(scene)
    lease = labelled(scene, kinds.LEASE)
    ends, number = time.monotonic() + 4, 0
    while time.monotonic() < ends:
        number += 1
        spec = {"holderIdentity": "another session", "renewTime": f"2026-01-01T00:00:00.{number:06}Z"}
        await scene.api.apply(lease | {"spec": spec})
        await asyncio.sleep(0.2)
        assert await truth(scene) == before


def labelled(scene, kind):
    labels = {CLUSTER_LABEL: "p", COMPONENT_LABEL: "head"}
    metadata = {"name": "foreign", "namespace": scene.namespace, "labels": labels}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
