"""Healthy objects beside broken ones behave as if alone."""

import asyncio

import pytest

from tests.simulation.api import ApiError, eventually
from tests.simulation.machines import BROKEN_IMAGE, NO_SUCH_NODE
from tests.simulation.monitor import Monitor
from tests.simulation.scene import condition, pool
from workergroups_api import manifest as kinds
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP

# Each kind of broken object once. More keep a processor busy for minutes, and show no more: the fuzzer has fifty odd
# objects at a time.
COUNT = 16


def container(**fields):
    return {"podTemplate": {"spec": {"containers": [{"name": "ray-worker", **fields}]}}}


def cluster_of(letter, number):
    """The RayCluster of a healthy pool: each of the first three has its own, and the others share one."""
    return f"{letter}{min(number, 3)}"


def broken_pools():
    """Pools that cannot be; three of four on the cluster of a healthy one."""
    specs = [
        {"podTemplate": {"spec": {"serviceAccountName": "nobody"}}},
        container(resources={"limits": {"memory": "lots"}}),
        container(comand=["x"]),
        container(image=f"{BROKEN_IMAGE}:1"),
        {"podTemplate": {"spec": {"nodeSelector": {NO_SUCH_NODE: "yes"}}}},
        {"podTemplate": {"spec": {"priorityClassName": "none"}}},
        {"podTemplate": {"spec": {"tolerations": "x"}}},
    ]
    for number in range(COUNT // 2):
        shared = {"clusterName": cluster_of("h", number)} if number % 4 else {}
        yield f"b{number}", specs[number % len(specs)] | shared


def broken_groups():
    """Groups that cannot be, on the bundles of healthy ones."""
    specs = [
        {"worker": {"class": "train.Failing"}},
        {"worker": {"class": "train.Missing"}},
        {"code": {"configMap": {"name": "none"}}},
        {
            "env": [{"name": f"A{number}", "value": "x" * 30_000} for number in range(3)],
            "worker": {"class": "train.Failing"},
        },
    ]
    for number in range(COUNT // 2):
        pools = (
            [{"name": f"h{number}"}] if number % 5 else [{"name": f"h{number}", "bundles": {"start": 7, "count": 9}}]
        )
        yield f"b{number}", {"pools": pools} | specs[number % len(specs)]


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_healthy_pools_next_to_as_many_broken_objects(scene):
    scene.world.failing["train.Failing"] = "RuntimeError: \N{COLLISION SYMBOL}" + "x" * 40_000
    monitor = Monitor(scene)
    watching = asyncio.create_task(monitor.run())
    await _make_healthy(scene, "a")
    for name, spec in broken_pools():
        await scene.pool(name, **spec)
    for name, spec in broken_groups():
        await scene.group(name, **spec)
    await _broken_are_broken(scene)
    await _make_healthy(scene, "h")
    await _healthy_stay_ready(scene, monitor)
    watching.cancel()


async def _make_healthy(scene, letter):
    """Half of the pools at a time."""
    names = [f"{letter}{number}" for number in range(COUNT // 2)]
    for number, name in enumerate(names):
        await scene.pool(name, clusterName=cluster_of(letter, number))
        await scene.group(name)
    for name in names:
        await scene.ready(RESOURCE_POOL, name, seconds=250)
        await scene.ready(WORKER_GROUP, name, seconds=250)


async def _broken_are_broken(scene):
    for kind in (RESOURCE_POOL, WORKER_GROUP):
        for body in await scene.api.list(kind, scene.namespace):
            if body["metadata"]["name"].startswith("b"):
                await scene.until(kind, body["metadata"]["name"], "Ready", "False", seconds=60)


async def _healthy_stay_ready(scene, monitor):
    await asyncio.sleep(5)
    before = len(monitor.turns)
    await scene.rest(quiet=5, within=60)
    assert monitor.turns[before:] == []
    for kind in (RESOURCE_POOL, WORKER_GROUP):
        for body in await scene.api.list(kind, scene.namespace):
            name = body["metadata"]["name"]
            assert (condition(body)["status"] == "True") is not name.startswith("b"), body
    lost = [turn for turn in monitor.turns if turn.before == "True" and not turn.name.startswith("b")]
    assert lost == []


async def test_a_broken_object_that_is_mended_is_served(scene):
    await scene.pool("p", podTemplate={"spec": {"serviceAccountName": "nobody"}})
    await scene.until(RESOURCE_POOL, "p", "Ready", "False", "PodsRefused")
    await scene.edit(RESOURCE_POOL, "p", {"podTemplate": None})
    await scene.ready(RESOURCE_POOL, "p", seconds=20)


async def test_what_was_stored_before_a_rule_is_reported_of_its_own_object(scene):
    """A CustomResourceDefinition without the schema takes anything, as one of an earlier version did."""
    name = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{RESOURCE_POOL.plural}.{RESOURCE_POOL.group}"
    crd = await scene.api.request("GET", name)
    await scene.pool("good", clusterName="shared")
    try:
        await _write_unreadable(scene, name, crd)
    finally:
        await _restore(scene, name, crd)
    await eventually("an event that reports it", lambda: _is_told(scene), seconds=15)
    await scene.ready(RESOURCE_POOL, "good", seconds=20)


async def _is_told(scene):
    """Its status cannot be written either: the API server applies nothing to what its schema does not fit."""
    events = await scene.api.list(kinds.EVENT, scene.namespace)
    return any(event["regarding"]["name"] == "odd" and "processesPerNode" in event["note"] for event in events)


async def _write_unreadable(scene, name, crd):
    loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [version | {"schema": {"openAPIV3Schema": loose}} for version in crd["spec"]["versions"]]
    await scene.api.request("PATCH", name, {"spec": {"versions": versions}}, "application/merge-patch+json")
    odd = pool(scene.namespace, "odd", processesPerNode="many", clusterName="shared")
    for _ in range(50):
        try:
            await scene.api.create(odd)
            return
        except ApiError:
            await asyncio.sleep(0.2)
    raise AssertionError("the loose schema does not count")


async def _restore(scene, name, crd):
    versions = {"spec": {"versions": crd["spec"]["versions"]}}
    await scene.api.request("PATCH", name, versions, "application/merge-patch+json")
    for _ in range(50):
        try:
            await scene.api.create(pool(scene.namespace, "probe", processesPerNode="many"))
        except ApiError:
            return
        await scene.api.delete(kinds.RESOURCE_POOL, scene.namespace, "probe")
        await asyncio.sleep(0.2)
