"""One local Ray per test file, without the dashboard and with fake GPUs."""

from __future__ import annotations

import os

import pytest
import ray


@pytest.fixture(scope="module")
def ray_environment(ray_environment):
    """Ranks import what these test modules define; under pytest, Ray does not pass the driver's module path on."""
    ray_environment.setenv("PYTHONPATH", os.path.dirname(__file__))
    return ray_environment


@pytest.fixture(scope="module")
def local_ray(ray_environment):
    """Ray with 8 GPUs and CPUs enough for two pools of the default ``max_colocate_count``."""
    ray.init(address="local", num_cpus=100, num_gpus=8, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()
