"""A pytest plugin: verl's tests on one Ray, with this machine's GPUs, or else with GPUs that are only numbers."""

import functools

import pytest
import ray
import torch
from ray.cluster_utils import Cluster

GPUS = torch.cuda.device_count() or 8


@pytest.fixture(scope="session")
def cluster():
    """A Ray that outlives the tests' drivers: to start one takes longer than most of the tests."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAY_AUTH_MODE", "disabled")
        environment.setenv("RAY_prestart_worker_first_driver", "0")
        environment.setenv("RAY_memory_monitor_refresh_ms", "0")
        cluster = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 100, "num_gpus": GPUS, "include_dashboard": False}
        )
        yield cluster
        cluster.shutdown()


@pytest.fixture(autouse=True)
def logical_gpus(monkeypatch, cluster):
    """A test that starts Ray gets a driver on that one; what it made ends with its driver."""
    init = ray.init

    @functools.wraps(init)
    def connect(*, num_cpus=None, **options):
        return init(address=cluster.address, **options)

    monkeypatch.setattr(ray, "init", connect)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: GPUS)
    yield
    ray.shutdown()
