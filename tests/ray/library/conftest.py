"""A local Ray without the dashboard and with fake GPUs."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pytest
import ray
from ray._raylet import PlacementGroupID
from ray.util import placement_group_table, remove_placement_group
from ray.util.placement_group import PlacementGroup

from tests.ray.library.replaceable import Trainer
from workergroups import RayResourcePool
from workergroups.announcements import incarnations

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def ray_environment(ray_environment):
    """Ranks import what these modules define; under pytest, Ray does not pass the driver's module path on."""
    ray_environment.setenv("PYTHONPATH", str(REPOSITORY))
    return ray_environment


@pytest.fixture(scope="module")
def local_ray(ray_environment, rays):
    """8 GPUs, and CPUs enough for two pools of the default ``max_colocate_count``; no file leaves anything in it."""
    rays.use("local", local)
    yield
    clear()


@pytest.fixture(scope="module")
def pool(local_ray):
    with RayResourcePool([2], use_gpu=False, max_colocate_count=4) as pool:
        yield pool


@pytest.fixture(scope="module")
def trainer_pool(local_ray):
    with RayResourcePool([2], use_gpu=False, max_colocate_count=8) as pool:
        yield pool


@pytest.fixture
def trainer(trainer_pool, request):
    """Starts incarnations of a group of this test's own, as the agent does."""
    group = Trainer(trainer_pool, request.node.name.replace("/", "-"))
    yield group
    group.end()
    incarnations.forget(group.name)


@contextmanager
def local():
    ray.init(address="local", num_cpus=100, num_gpus=8, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def clear():
    """Take away what can still be found, and with the placement groups what runs in them."""
    for actor in ray.util.list_named_actors(all_namespaces=True):
        ray.kill(ray.get_actor(**actor))
    for number, group in placement_group_table().items():
        if group["state"] != "REMOVED":
            remove_placement_group(PlacementGroup(PlacementGroupID(bytes.fromhex(number))))
