"""What KubeRay starts Ray with in the pods: CPUs, custom resources and labels."""

import re

from tests.simulation.api import eventually
from workergroups_api.manifest import RESOURCE_POOL
from workergroups_api.names import RESTARTED_AT_ANNOTATION

NAMED = {"resources": {"teacher": 2, "topo_rank": 1}, "labels": {"zone": "a", "example.com/rack": "r7"}}


def started_with(pod):
    """The options of `ray start`."""
    (container,) = [each for each in pod["spec"]["containers"] if each["name"].startswith("ray-")]
    (command,) = [each["value"] for each in container["env"] if each["name"] == "KUBERAY_GEN_RAY_START_CMD"]
    return dict(re.findall(r"--([a-z-]+)=('[^']*'|\S+)", command))


async def test_pods_start_ray_with_what_the_pool_names_and_keep_it_until_a_restart(scene):
    await scene.pool("p", ray=NAMED)
    await scene.ready(RESOURCE_POOL, "p", seconds=60)
    (head,), (node,) = scene.world.pods("p", "head"), scene.world.pods("p", "worker")
    assert started_with(head)["num-cpus"] == "0"
    options = started_with(node)
    assert options["resources"] == """'{"teacher": 2, "topo_rank": 1}'"""
    assert options["labels"] == "example.com/rack=r7,zone=a"
    assert {"zone": "a", "example.com/rack": "r7"}.items() <= node["metadata"]["labels"].items()

    await scene.edit(RESOURCE_POOL, "p", {"ray": {"labels": {"zone": "b"}}})
    await scene.until(RESOURCE_POOL, "p", "UpToDate", "False", seconds=60)
    await scene.annotate(RESOURCE_POOL, "p", RESTARTED_AT_ANNOTATION, "now")

    async def is_replaced():
        zones = [pod["metadata"]["labels"].get("zone") for pod in scene.world.pods("p", "worker")]
        return zones == ["b"]

    await eventually("a node in zone b", is_replaced, 60)
