"""Programs on pods: with the pool's own environment and volumes, on its bundles, and with nodes for themselves."""

import json

from tests.cluster.drivers import drive
from tests.cluster.kubectl import group, pool

NVIDIA = {"vendor": "nvidia", "product": "NVIDIA-A100-SXM4-80GB"}
ACCUMULATOR = {"class": "accumulator.Accumulator"}
SECRET = "not-to-be-seen-anywhere"
SETTINGS = {
    "env": [{"name": "FLAVOUR", "valueFrom": {"secretKeyRef": {"name": "flavours", "key": "best"}}}],
    "volumes": [{"mountPath": "/scratch", "emptyDir": {}}],
    "sharedMemory": "96Mi",
    "head": {"resources": {"requests": {"memory": "3Gi"}}},
}

ON_BUNDLES = """
import os, ray
from workergroups import RayClassWithInitArgs, RayWorkerGroup, Worker, attach_pool, split_resource_pool

class Seen(Worker):
    def look(self):
        shm = os.statvfs("/dev/shm")
        megabytes = shm.f_blocks * shm.f_frsize >> 20
        return os.environ["FLAVOUR"], os.path.ismount("/scratch"), megabytes, os.uname().nodename

made = []
for part in split_resource_pool(attach_pool("mine"), 1):
    with RayWorkerGroup(part, RayClassWithInitArgs(Seen)) as group:
        made += group.execute_all_sync("look")
here = Seen.look(None)
ranks = [rank["FLAVOUR"] for rank in workergroups.attach("mine").execute_all_sync("look")]
roles = workergroups.attach("both").spawn(["left", "right"])
added = [roles["left"].add_to_all(2), roles["right"].add_to_all(3), roles["left"].add_to_all(0)]
"""

# As a program for any Ray cluster is: no word of ours in it.
BY_ITSELF = """
import ray
from ray.util import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

ray.init(address="auto")
free = ray.available_resources()["GPU"]
bundles = placement_group([{"CPU": 1, "GPU": 2}] * 2, strategy="STRICT_SPREAD")
ray.get(bundles.ready(), timeout=60)

@ray.remote(num_cpus=1, num_gpus=2)
class Parent:
    def look(self):
        child = ray.remote(num_cpus=0)(lambda: ray.get_runtime_context().get_node_id()).remote()
        return ray.get_runtime_context().get_node_id(), len(ray.get_gpu_ids()), bool(ray.get(child))

places = [PlacementGroupSchedulingStrategy(bundles, placement_group_bundle_index=index) for index in range(2)]
parents = [Parent.options(scheduling_strategy=place).remote() for place in places]
seen = ray.get([parent.look.remote() for parent in parents], timeout=60)
plain = ray.get([ray.remote(num_cpus=1)(lambda: 7).remote() for _ in range(4)], timeout=60)
nodes = len({node for node, _, _ in seen})
result = [free, nodes, [count for _, count, _ in seen], [child for _, _, child in seen], plain]
"""


def test_programs_run_on_the_bundles_of_a_pool_and_with_its_settings(namespace, clean):
    flavours = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "flavours"}, "stringData": {"best": SECRET}}
    namespace.apply(
        flavours,
        pool("mine", clusterName="programs", accelerator={"vendor": "none"}, **SETTINGS),
        group("mine"),
        group("both", ["mine"], worker=None, roles=[ACCUMULATOR | {"name": name} for name in ("left", "right")]),
    )
    for name in ("mine", "both"):
        namespace.until_ready("workergroup", name)
    made, here, ranks, added = drive(namespace, "programs", ON_BUNDLES, "[made, here, ranks, added]")
    assert added == [[2, 3], [3, 4], [2, 3]]
    assert ranks == [SECRET] * 2
    for flavour, scratch, shared_memory, _ in [*made, here]:
        assert (flavour, scratch, shared_memory) == (SECRET, True, 96)
    (node,) = {pod for _, _, _, pod in made}
    assert node != here[3]
    for kind in ("resourcepools", "workergroups", "configmaps", "rayclusters", "deployments", "pods", "events"):
        assert SECRET not in json.dumps(namespace.get(kind))


def test_an_unchanged_program_runs_on_nodes_without_reservations(namespace, clean):
    namespace.apply(pool("bare", nodes=2, accelerator=NVIDIA, reservation="None"))
    ready = namespace.until_ready("resourcepool", "bare")
    assert ready["reason"] == "NodesJoined"
    free, nodes, counts, children, plain = drive(namespace, "bare", BY_ITSELF, "result")
    assert (free, nodes, counts, children, plain) == (4, 2, [2, 2], [True, True], [7] * 4)
