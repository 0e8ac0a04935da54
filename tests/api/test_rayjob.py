"""KubeRay's RayJob on a pool's cluster, with the real KubeRay: what it submits, and with which token."""

import pytest

from tests.simulation.api import eventually, path_of
from workergroups_api.manifest import RAY_CLUSTER, RESOURCE_POOL, Kind

RAY_JOB = Kind("ray.io/v1", "RayJob", "rayjobs")
JOB = Kind("batch/v1", "Job", "jobs")


def ray_job(namespace, cluster, **spec):
    return {
        "apiVersion": RAY_JOB.api_version,
        "kind": RAY_JOB.kind,
        "metadata": {"name": "train", "namespace": namespace},
        "spec": {"entrypoint": "python /code/driver.py", "clusterSelector": {"ray.io/cluster": cluster}} | spec,
    }


async def submitter(scene):
    """The Job that KubeRay creates to submit the RayJob's entrypoint."""

    async def made():
        found = await scene.api.list(JOB, scene.namespace)
        return found[0]["spec"]["template"]["spec"]["containers"][0] if found else None

    return await eventually("the Job that submits", made, 30)


@pytest.mark.timeout(90)
async def test_a_rayjob_on_a_pools_cluster_has_its_token_and_its_image(scene):
    await scene.api.request("POST", path_of(RAY_JOB, scene.namespace), ray_job(scene.namespace, "p"))
    # A RayJob may come before its pool, as GitOps applies both at once.
    await scene.pool("p")
    await scene.ready(RESOURCE_POOL, "p")
    container = await submitter(scene)
    variables = {each["name"]: each for each in container["env"]}
    assert variables["RAY_AUTH_MODE"]["value"] == "token"
    assert variables["RAY_AUTH_TOKEN"]["valueFrom"]["secretKeyRef"] == {"name": "p", "key": "auth_token"}
    assert variables["RAY_DASHBOARD_ADDRESS"]["value"].startswith(f"p-head-svc.{scene.namespace}.svc")
    head = (await scene.get(RAY_CLUSTER, "p"))["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    assert container["image"] == head["image"]
    assert "python /code/driver.py" in " ".join(container["args"])
