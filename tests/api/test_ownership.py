"""Many writers at once, each with fields of its own: nobody takes what is another's, and then nobody writes any more.

The writers are those of a cluster on a usual day: Argo CD applies every second, by server-side apply and in the way of
older versions; two users apply different fields of one pool; somebody edits each object that the operator made; an
autoscaler writes the size; Kueue resumes the cluster with what its admission adds.
"""

import asyncio
import json
from collections import defaultdict
from contextlib import AsyncExitStack

import pytest

from tests.api.kueue_contract import QUEUE, KueueContract
from tests.simulation.api import APPLY, MERGE, path_of
from tests.simulation.monitor import SLACK_SECONDS
from tests.simulation.scene import condition, group, pool
from workergroups_api import manifest as kinds
from workergroups_api.children import child_names
from workergroups_api.conditions import MAX_CONDITIONS
from workergroups_api.manifest import RAY_CLUSTER, RESOURCE_POOL, WORKER_GROUP
from workergroups_api.names import AGENT_FIELD_MANAGER, MANIFEST_ANNOTATION, OPERATOR_FIELD_MANAGER

ARGO, ARGO_OLD, EDITOR, ALICE, BOB = "argocd-controller", "kubectl-client-side-apply", "kubectl-edit", "alice", "bob"
STORM_SECONDS, QUIET_SECONDS = 6.0, 3.0
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
NOTE = {"metadata": {"annotations": {"example.com/note": "mine"}, "labels": {"example.com/team": "mine"}}}
# What somebody breaks in what the operator wants: the operator restores it.
BROKEN = {
    kinds.RAY_CLUSTER.kind: {"spec": {"headGroupSpec": {"rayStartParams": {"num-gpus": "7"}}}},
    kinds.DEPLOYMENT.kind: {"spec": {"replicas": 3}},
    kinds.CONFIG_MAP.kind: {"data": {"plan.json": "no plan"}},
    kinds.ROLE.kind: {"rules": []},
    kinds.ROLE_BINDING.kind: {"subjects": []},
    kinds.NETWORK_POLICY.kind: {"spec": {"ingress": [{}]}},
}


async def apply(scene, manifest, manager):
    """Server-side apply without force: it fails if the manager would take another's field."""
    metadata = manifest["metadata"]
    path = path_of(kinds.kind_of(manifest), metadata["namespace"], metadata["name"])
    return await scene.api.request("PATCH", path, manifest, APPLY, fieldManager=manager)


async def merge(scene, kind, name, patch, manager):
    return await scene.api.request("PATCH", path_of(kind, scene.namespace, name), patch, MERGE, fieldManager=manager)


def of_argo(scene, queue=None):
    found = pool(scene.namespace, "p")
    found["metadata"]["labels"] = {"app.kubernetes.io/instance": "research"} | ({QUEUE: queue} if queue else {})
    found["metadata"]["annotations"] = {"argocd.argoproj.io/tracking-id": "research:workergroups.dev/ResourcePool:p"}
    return found


def of_a_user(scene, **spec):
    metadata = {"name": "p", "namespace": scene.namespace}
    kind = {"apiVersion": RESOURCE_POOL.api_version, "kind": RESOURCE_POOL.kind}
    return kind | {"metadata": metadata, "spec": spec}


async def every_second(act):
    while True:
        await act()
        await asyncio.sleep(1)


async def apply_as_older_versions_do(scene):
    """A three-way merge that ends in a patch, with a copy of the whole manifest in an annotation."""
    wanted = group(scene.namespace, "p")
    copied = {LAST_APPLIED: json.dumps(wanted)}
    patch = {"metadata": {"annotations": copied}, "spec": wanted["spec"]}
    await merge(scene, WORKER_GROUP, "p", patch, ARGO_OLD)


async def autoscale(scene):
    """Write the pool's size through its scale subresource."""
    path = path_of(RESOURCE_POOL, scene.namespace, "p", "scale")
    await scene.api.request("PATCH", path, {"spec": {"replicas": 2}}, MERGE, fieldManager="autoscaler")


async def edit_each_child(scene, *, is_held):
    for kind, name in await children(scene):
        await merge(scene, kind, name, NOTE, EDITOR)
        if kind.kind in BROKEN and not (is_held and kind is RAY_CLUSTER):
            await merge(scene, kind, name, BROKEN[kind.kind], EDITOR)
        await asyncio.sleep(0.2)


async def children(scene):
    found = [(kind, name, await scene.api.get(kind, scene.namespace, name)) for kind, name in child_names("p")]
    return [(kind, name) for kind, name, body in found if body is not None]


async def everything(scene):
    named = [(RESOURCE_POOL, "p"), (WORKER_GROUP, "p"), *await children(scene)]
    return {(kind.kind, name): await scene.get(kind, name) for kind, name in named}


async def storm(scene, *, queue=None):
    """Let all writers work at once; Argo CD goes on until the caller cancels what this returns."""
    repeated = [
        asyncio.create_task(every_second(lambda: apply(scene, of_argo(scene, queue), ARGO))),
        asyncio.create_task(every_second(lambda: apply_as_older_versions_do(scene))),
        asyncio.create_task(every_second(lambda: autoscale(scene))),
    ]
    await asyncio.gather(
        apply(scene, of_a_user(scene, progressDeadlineSeconds=601), ALICE),
        apply(scene, of_a_user(scene, podTemplate={"metadata": {"labels": {"example.com/by": "bob"}}}), BOB),
        edit_each_child(scene, is_held=queue is not None),
        asyncio.sleep(STORM_SECONDS),
    )
    return repeated


def owners(body):
    """Each leaf of the object's managed fields -> its managers."""
    found = defaultdict(set)

    def walk(fields, path, manager):
        parts = {key: value for key, value in fields.items() if key != "."}
        if not parts:
            found[path].add(manager)
        for key, value in parts.items():
            walk(value, (*path, key), manager)

    for entry in body["metadata"]["managedFields"]:
        walk(entry["fieldsV1"], (), entry["manager"])
    return found


def managers_of(body, *path):
    return owners(body)[tuple(f"f:{key}" for key in path)]


async def versions(scene):
    """Leases are renewed, and the rest does not change."""
    found = await everything(scene)
    return {
        identity: body["metadata"]["resourceVersion"]
        for identity, body in found.items()
        if identity[0] != kinds.LEASE.kind
    }


def check_owners(found):
    for identity, body in found.items():
        shared = {path: managers for path, managers in owners(body).items() if len(managers) > 1}
        assert not shared, (identity, shared)
        mine = {entry["manager"] for entry in body["metadata"]["managedFields"] if "subresource" not in entry}
        if identity[0] in (RESOURCE_POOL.kind, WORKER_GROUP.kind):
            assert not {OPERATOR_FIELD_MANAGER, AGENT_FIELD_MANAGER} & mine, identity
        else:
            assert managers_of(body, "metadata", "annotations", MANIFEST_ANNOTATION) == {OPERATOR_FIELD_MANAGER}
            assert managers_of(body, "metadata", "annotations", "example.com/note") == {EDITOR}, identity
            assert managers_of(body, "metadata", "labels", "example.com/team") == {EDITOR}, identity
            assert not {"argocd.argoproj.io/tracking-id", LAST_APPLIED} & body["metadata"]["annotations"].keys()
            assert "app.kubernetes.io/instance" not in body["metadata"]["labels"]
    of_pool = found["ResourcePool", "p"]
    assert managers_of(of_pool, "spec", "processesPerNode") == {ARGO}
    assert managers_of(of_pool, "spec", "progressDeadlineSeconds") == {ALICE}
    assert managers_of(of_pool, "spec", "podTemplate", "metadata", "labels", "example.com/by") == {BOB}
    # Kubernetes records no owner of what was written through the scale subresource of a custom resource.
    assert managers_of(of_pool, "spec", "nodes") <= {"autoscaler"}
    assert of_pool["spec"]["nodes"] == 2
    assert (of_pool["spec"]["progressDeadlineSeconds"], of_pool["spec"]["processesPerNode"]) == (601, 2)


async def check_rest(scene, repeated, *, is_held=False):
    """While Argo CD still applies the same, no object changes and the operator writes nothing."""
    try:
        if is_held:  # What the autoscaler asks for waits for the next admission.
            await scene.until(RESOURCE_POOL, "p", "Ready", "False", "ChangesWait", seconds=20)
        else:
            await scene.ready(RESOURCE_POOL, "p", seconds=20)
        await scene.ready(WORKER_GROUP, "p", seconds=20)
        await scene.rest(QUIET_SECONDS)
        before = await versions(scene)
        await asyncio.sleep(QUIET_SECONDS)
        assert await versions(scene) == before
        assert not [task.exception() for task in repeated if task.done()]
    finally:
        for task in repeated:
            task.cancel()
        await asyncio.gather(*repeated, return_exceptions=True)


async def created(scene, queue=None):
    await apply(scene, of_argo(scene, queue), ARGO)
    wanted = group(scene.namespace, "p")
    copied = {LAST_APPLIED: json.dumps(wanted)}
    body = wanted | {"metadata": wanted["metadata"] | {"annotations": copied}}
    await scene.api.request("POST", path_of(WORKER_GROUP, scene.namespace), body, fieldManager=ARGO_OLD)
    await scene.ready(RESOURCE_POOL, "p", seconds=20)
    return await scene.ready(WORKER_GROUP, "p", seconds=20)


@pytest.mark.timeout(120)
async def test_every_field_keeps_its_owner_and_nobody_writes_for_ever(scene):
    before = await created(scene)
    await check_rest(scene, await storm(scene))
    found = await everything(scene)
    check_owners(found)
    assert found["WorkerGroup", "p"]["status"]["incarnation"] == before["status"]["incarnation"]
    assert found["Deployment", "p-agent"]["spec"]["replicas"] == 1
    assert found["Role", "p-agent"]["rules"]
    assert found["RayCluster", "p"]["spec"]["headGroupSpec"]["rayStartParams"]["num-gpus"] == "0"


@pytest.fixture
def kueue(scene, runner, tmp_path):
    stack = AsyncExitStack()
    running = KueueContract.run(scene.api, scene.namespace, tmp_path, quota=1)
    yield runner.run(stack.enter_async_context(running))
    runner.run(stack.aclose())


@pytest.mark.long
@pytest.mark.timeout(120)
async def test_kueue_keeps_what_it_added_among_them(scene, kueue):
    await created(scene, "research")
    await check_rest(scene, await storm(scene, queue="research"), is_held=True)
    found = await everything(scene)
    check_owners(found)
    cluster = found["RayCluster", "p"]
    assert managers_of(cluster, "spec", "suspend") == {"kueue"}
    assert managers_of(cluster, "spec", "workerGroupSpecs") == {"kueue"}
    assert condition(found["ResourcePool", "p"], "Admitted")["status"] == "True"
    assert condition(found["ResourcePool", "p"], "UpToDate")["reason"] == "ChangesWait"
    assert not kueue.broken
    assert not kueue.stopped


def strange(number):
    at = "2026-01-01T00:00:00Z"
    return {"type": f"Strange{number}", "status": "True", "reason": "X", "message": "", "lastTransitionTime": at}


@pytest.mark.parametrize("kind", [RESOURCE_POOL, WORKER_GROUP], ids=lambda kind: kind.kind)
async def test_conditions_of_others_do_not_keep_a_status_from_being_written(scene, kind):
    await scene.pool("p")
    await scene.group("p")
    await scene.ready(WORKER_GROUP, "p")
    reserved = (await scene.get(RESOURCE_POOL, "p"))["status"]["reservation"]
    strangers = {"conditions": [strange(number) for number in range(MAX_CONDITIONS)]}
    await scene.api.merge(kind, scene.namespace, "p", {"status": strangers}, "status")
    await scene.ready(kind, "p", seconds=5 + SLACK_SECONDS)
    assert (await scene.get(RESOURCE_POOL, "p"))["status"]["reservation"] == reserved
    await scene.edit(RESOURCE_POOL, "p", {"suspend": True})
    await scene.until(kind, "p", "Ready", "False", seconds=5 + SLACK_SECONDS)
    await scene.rest(QUIET_SECONDS)
