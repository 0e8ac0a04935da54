"""Variables that groups take from Secrets and ConfigMaps: stored in the cluster's Secret, and named in the plan."""

import base64
import json

from tests.simulation.api import eventually
from tests.simulation.scene import condition
from workergroups_api import manifest as kinds
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP
from workergroups_api.names import RESTARTED_AT_ANNOTATION

FROM_KEYS = {"envFrom": [{"secretRef": {"name": "keys"}}]}


async def write_secret(scene, **values):
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    metadata = {"name": "keys", "namespace": scene.namespace}
    await scene.api.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})


async def entry(scene, group="p"):
    found = await scene.api.get(kinds.SECRET, scene.namespace, "p-group-env")
    text = ((found or {}).get("data") or {}).get(group)
    return None if text is None else json.loads(base64.b64decode(text))


async def test_variables_from_a_secret_begin_with_the_incarnation(scene):
    await scene.pool("p")
    await scene.ready(RESOURCE_POOL, "p")
    await scene.group("p", **FROM_KEYS)
    waiting = await scene.until(WORKER_GROUP, "p", "Ready", "False", "WaitingForEnvironment")
    assert "spec.envFrom[0]: there is no Secret keys: create it" in condition(waiting)["message"]

    await write_secret(scene, KEY="first")
    first = await scene.ready(WORKER_GROUP, "p")
    assert await entry(scene) == {"digest": first["status"]["environment"], "env": {"KEY": "first"}}

    # Ranks keep what they began with. The operator finds the change at its next look, for which any event will do.
    await write_secret(scene, KEY="second")
    await scene.edit(WORKER_GROUP, "p", {"progressDeadlineSeconds": 500})
    old = await scene.until(WORKER_GROUP, "p", "UpToDate", "False", "OldEnvironment")
    assert (condition(old)["status"], old["status"]["incarnation"]) == ("True", 1)
    assert (await entry(scene))["env"] == {"KEY": "first"}

    restart = {"metadata": {"annotations": {RESTARTED_AT_ANNOTATION: "now"}}}
    await scene.api.merge(WORKER_GROUP, scene.namespace, "p", restart)
    second = await scene.until(WORKER_GROUP, "p", "UpToDate", "True")

    async def is_new():
        nonlocal second
        second = await scene.ready(WORKER_GROUP, "p")
        return second["status"]["incarnation"] == 2 and condition(second, "UpToDate")["status"] == "True"

    await eventually("the second incarnation", is_new)
    assert await entry(scene) == {"digest": second["status"]["environment"], "env": {"KEY": "second"}}
    assert second["status"]["environment"] != first["status"]["environment"]

    await scene.delete(kinds.SECRET, "keys")
    await scene.edit(WORKER_GROUP, "p", {"progressDeadlineSeconds": 400})
    gone = await scene.until(WORKER_GROUP, "p", "UpToDate", "Unknown", "EnvironmentMissing")
    assert condition(gone)["status"] == "True"


async def test_a_bad_reference_harms_no_other_group(scene):
    await scene.pool("p")
    await write_secret(scene, RANK="1")
    await scene.group("bad", pools=[{"name": "p"}], **FROM_KEYS)
    await scene.group("p")
    await scene.ready(WORKER_GROUP, "p")
    bad = await scene.until(WORKER_GROUP, "bad", "Ready", "False", "WaitingForEnvironment")
    assert "Secret keys has the key RANK, and WorkerGroups sets RANK for each rank" in condition(bad)["message"]
    assert await entry(scene, "bad") is None


async def test_the_values_leave_the_clusters_secret_with_their_group(scene):
    await write_secret(scene, KEY="value")
    await scene.pool("p")
    await scene.group("p", **FROM_KEYS)
    await scene.ready(WORKER_GROUP, "p")
    assert await entry(scene) is not None
    await scene.delete(WORKER_GROUP, "p")

    async def is_gone():
        return await entry(scene) is None

    await eventually("the entry to go", is_gone)
