"""A Ray of three raylets as a pool's cluster would have: a head without devices, two nodes of one pool."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import ray
from ray._private import services
from ray.cluster_utils import Cluster
from ray.util import placement_group_table

from tests.ray.agent.planned import NODE_GROUP
from workergroups.naming import NAMESPACE
from workergroups_agent.ray_start import our_start_process


@contextmanager
def running_cluster() -> Iterator[Any]:
    """Run a cluster, and be its driver."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "num_gpus": 0, "include_dashboard": False})
    cluster.nodes_of_pool = [add_node(cluster), add_node(cluster)]
    ray.init(address=cluster.address, namespace=NAMESPACE, log_to_driver=False)
    try:
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@contextmanager
def pods_cluster() -> Iterator[Any]:
    """Run a cluster whose raylets start processes as they do in pods."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(services, "start_ray_process", our_start_process(services.start_ray_process))
        with running_cluster() as cluster:
            yield cluster


@contextmanager
def patient_cluster() -> Iterator[Any]:
    """Run a cluster as in pods, whose raylets wait for ten minutes for processes that do not start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_register_timeout_seconds", "600")
        with pods_cluster() as cluster:
            yield cluster


def add_node(cluster: Any) -> Any:
    """Add a node of the pool, with four devices."""
    return cluster.add_node(num_cpus=40, num_gpus=4, labels={"ray.io/node-group": NODE_GROUP})


def is_empty() -> bool:
    """Return whether nothing is left that the next test would take for its own: its pool has the same name."""
    placements = placement_group_table().values()
    return not ray.util.list_named_actors(all_namespaces=True) and all(
        each["state"] == "REMOVED" for each in placements
    )
