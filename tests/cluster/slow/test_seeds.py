"""The seeds' programs, which pass on a laptop's Ray, pass on pods: as they are on unreserved nodes, and on bundles."""

import json
import re
from importlib.util import find_spec
from pathlib import Path

from tests.cluster.drivers import JOB, drive
from tests.cluster.kubectl import pool
from tests.cluster.packages import mounted

# With torch and pytest.
PACKAGES = Path(find_spec("torch").origin).parents[1]
PROGRAMS = sorted((Path(__file__).parents[2] / "ray" / "library").glob("test_seed_*.py"))
NVIDIA = {"vendor": "nvidia", "product": "NVIDIA-A100-SXM4-80GB"}
AMD = {"vendor": "amd", "product": "AMD-Instinct-MI300X"}

# What stands where a laptop's Ray is started otherwise.
ON_THE_CLUSTER = """
import os, pytest, ray

@pytest.fixture(scope="session")
def local_ray():
    ray.init(address="auto", runtime_env={"working_dir": os.path.dirname(__file__)}, log_to_driver=False)
    yield
    ray.shutdown()
"""
WRITE = """
import json, pathlib, sys
for name, text in json.load(sys.stdin).items():
    pathlib.Path("/tmp/seeds").mkdir(exist_ok=True)
    pathlib.Path("/tmp/seeds", name).write_text(text)
"""
RUN = "cd /tmp/seeds && python -m pytest -q -rA -p no:cacheprovider --config-file=/dev/null --rootdir=. . 2>&1 || true"

# Seed 000 on bundles that two pools have reserved, with plain numbers for CUDA tensors.
ON_BUNDLES = """
from workergroups import (
    Dispatch, RayClassWithInitArgs, RayWorkerGroup, Worker, attach_pool, merge_resource_pool, register
)

class GPUAccumulator(Worker):
    def __init__(self):
        super().__init__()
        self.value = self.rank

    def add(self, x):
        self.value += x
        return self.value

class GPUAccumulatorDecorator(GPUAccumulator):
    @register(Dispatch.ONE_TO_ALL)
    def add(self, x):
        return super().add(x)

resource_pool, resource_pool_new = attach_pool("green"), attach_pool("red")
resource_pool_merge = merge_resource_pool(resource_pool, resource_pool_new)
results = [resource_pool_new.local_rank_list(), resource_pool_merge.local_rank_list()]
class_with_args = RayClassWithInitArgs(cls=GPUAccumulator)
with (
    RayWorkerGroup(resource_pool, class_with_args) as group,
    RayWorkerGroup(resource_pool_new, class_with_args) as group_new,
    RayWorkerGroup(resource_pool_merge, class_with_args) as group_merge,
):
    results.append(group.execute_all_sync("add", x=[1, 1, 1, 1]))
    results.append(group_new.execute_all_sync("add", x=[2, 2, 2, 2]))
    results.append(group_merge.execute_all_sync("add", x=[3] * 8))
with RayWorkerGroup(resource_pool_merge, RayClassWithInitArgs(cls=GPUAccumulatorDecorator)) as group:
    results.append(group.add(x=10))
"""


def test_the_seeds_programs_run_on_pods_as_they_are(namespace, clean):
    unreserved = {"processes": 4, "clusterName": "seeds", "reservation": "None", **mounted(PACKAGES)}
    namespace.apply(pool("green", accelerator=NVIDIA, **unreserved), pool("red", accelerator=AMD, **unreserved))
    for name in ("green", "red"):
        namespace.until_ready("resourcepool", name)
    files = {path.name: path.read_text() for path in PROGRAMS} | {"conftest.py": ON_THE_CLUSTER}
    head = namespace.head("seeds")
    namespace.run("exec", "-i", head, "--", "python", "-c", WRITE, stdin=json.dumps(files))
    said = namespace.run("exec", head, "--", "sh", "-c", RUN, timeout=600)
    assert re.search(r"(?m)^\d+ passed in ", said), said
    passed = set(re.findall(r"(?m)^PASSED (test_seed_\w+\.py)", said))
    assert passed == {path.name for path in PROGRAMS}


def test_seed_000_on_the_bundles_of_two_pools_that_are_attached_and_merged(namespace, clean):
    reserved = {"processes": 4, "clusterName": "seeds"}
    namespace.apply(pool("green", accelerator=NVIDIA, **reserved), pool("red", accelerator=AMD, **reserved))
    for name in ("green", "red"):
        namespace.until_ready("resourcepool", name)
    local_ranks, local_ranks_merged, *added = drive(namespace, "seeds", ON_BUNDLES, "results", way=JOB)
    assert local_ranks == [0, 1, 2, 3]
    assert local_ranks_merged == [0, 1, 2, 3, 0, 1, 2, 3]
    assert added == [
        [1, 2, 3, 4],
        [2, 3, 4, 5],
        [3, 4, 5, 6, 7, 8, 9, 10],
        [10, 11, 12, 13, 14, 15, 16, 17],
    ]
