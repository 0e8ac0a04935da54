"""The API server takes the manifests of the examples, and the pods that KubeRay creates from those for hardware."""

from pathlib import Path

import pytest
import yaml

from tests.simulation.api import path_of
from workergroups_api.manifest import RESOURCE_POOL, kind_of

EXAMPLES = Path(__file__).parents[2] / "examples"
OURS = ("ResourcePool", "WorkerGroup")
HARDWARE = sorted(path.name for path in (EXAMPLES / "hardware").glob("*.yaml") if path.name != "group.yaml")


def manifests(file):
    return [each for each in yaml.safe_load_all(file.read_text()) if each["kind"] in OURS]


@pytest.fixture
def runtime_class(scene, runner):
    """What NVIDIA's operator creates: the API server refuses pods that name a class which does not exist."""
    path = "/apis/node.k8s.io/v1/runtimeclasses"
    body = {"metadata": {"name": "nvidia"}, "handler": "nvidia"}
    runner.run(scene.api.request("POST", path, body))
    yield
    runner.run(scene.api.request("DELETE", f"{path}/nvidia"))


async def test_the_api_server_takes_each_manifest_with_all_of_its_fields(scene):
    found = [each for file in EXAMPLES.glob("*/*.yaml") for each in manifests(file)]
    assert len(found) > 20
    for manifest in found:
        path = path_of(kind_of(manifest), scene.namespace)
        taken = await scene.api.request("POST", path, manifest, fieldValidation="Strict", dryRun="All")
        assert taken["spec"].keys() >= manifest["spec"].keys()


@pytest.mark.parametrize("file", HARDWARE)
async def test_the_pods_for_hardware_are_created(scene, runtime_class, file):
    (pool,) = manifests(EXAMPLES / "hardware" / file)
    await scene.pool("p", **pool["spec"])
    await scene.ready(RESOURCE_POOL, "p", seconds=60)
    nodes = scene.world.pods("p", "worker")
    assert len(nodes) == 2
    (container,) = nodes[0]["spec"]["containers"]
    wanted = pool["spec"].get("podTemplate", {}).get("spec", {}).get("containers", [{}])[0]
    assert container.get("securityContext") == wanted.get("securityContext")
    assert {each["name"]: each.get("value") for each in wanted.get("env", [])}.items() <= {
        each["name"]: each.get("value") for each in container["env"]
    }.items()
