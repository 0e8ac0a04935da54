"""A pytest plugin: verl's tests on one Ray, with this machine's GPUs, or else with GPUs that are only numbers."""

import functools

import pytest
import ray
import torch
from ray.cluster_utils import Cluster

GPUS = torch.cuda.device_count() or 8
NEED_FOUR_GPUS = {
    "test_split_resource_pool_with_split_size_list",
    "test_split_resource_pool_with_split_size_list_cross_nodes",
    "test_split_resource_pool_with_split_twice",
    "test_dist_global_info_wg",
    "test_nested_worker",
    "test_basics",
    "test_all_gather_torch",
    "test_all_gather_torch_v2",
}


def pytest_collection_modifyitems(items):
    """With fewer real GPUs, these tests would wait for their bundles until that times out."""
    for item in items:
        if GPUS < 4 and item.name in NEED_FOUR_GPUS:
            item.add_marker(pytest.mark.skip(reason=f"it asks for 4 GPUs, and this machine has {GPUS}"))


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
