"""One local Ray per test file, without the dashboard and with fake GPUs."""

from __future__ import annotations

import os

import pytest
import ray


@pytest.fixture(scope="module")
def ray_environment():
    """What Ray's processes must find when they start; gone again afterwards, for other tests talk to other clusters."""
    with pytest.MonkeyPatch.context() as environment:
        # A local cluster of Ray 2.60 otherwise turns token authentication on, and writes a token file.
        environment.setenv("RAY_AUTH_MODE", "disabled")
        # Otherwise Ray starts a process per CPU, of which these tests pretend to have many.
        environment.setenv("RAY_prestart_worker_first_driver", "0")
        # Ranks import what these test modules define; under pytest, Ray does not pass the driver's module path on.
        environment.setenv("PYTHONPATH", os.path.dirname(__file__))
        yield


@pytest.fixture(scope="module")
def local_ray(ray_environment):
    """Ray with 8 GPUs and CPUs enough for two pools of the default ``max_colocate_count``."""
    ray.init(address="local", num_cpus=100, num_gpus=8, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()
