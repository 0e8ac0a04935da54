"""A Ray of three raylets as a pool's cluster would have: a head without devices, two nodes of one pool."""

from contextlib import contextmanager
from tempfile import TemporaryDirectory

import pytest
import ray
from ray._private import services
from ray.cluster_utils import Cluster
from ray.util import placement_group_table

from tests.ray.agent.executor_process import EXECUTOR, Process
from tests.ray.agent.planned import NODE_GROUP, Agent
from workergroups.naming import NAMESPACE
from workergroups_agent.ray_start import our_start_process
from workergroups_api.vocabulary import Variable


@pytest.fixture(scope="module")
def cluster(ray_environment, rays):
    return rays.use("cluster", three_raylets)


@contextmanager
def three_raylets():
    # What a pod would mount, the same on all nodes.
    with TemporaryDirectory() as group_env, pytest.MonkeyPatch.context() as environment:
        environment.setenv(Variable.GROUP_ENV_DIRECTORY.value, group_env)
        with running_cluster() as cluster:
            yield cluster


@contextmanager
def running_cluster():
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "num_gpus": 0, "include_dashboard": False})
    cluster.nodes_of_pool = [add_node(cluster), add_node(cluster)]
    ray.init(address=cluster.address, namespace=NAMESPACE, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@contextmanager
def pods_cluster():
    """Run a cluster whose raylets start processes as they do in pods."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(services, "start_ray_process", our_start_process(services.start_ray_process))
        with running_cluster() as cluster:
            yield cluster


@pytest.fixture(scope="module")
def patient_raylets(ray_environment, rays):
    """Raylets that start processes as they do in pods, and wait for very long for those that do not start."""
    rays.stop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_register_timeout_seconds", "600")
        with pods_cluster() as cluster:
            yield cluster


def add_node(cluster):
    return cluster.add_node(num_cpus=40, num_gpus=4, labels={"ray.io/node-group": NODE_GROUP})


@pytest.fixture
def agent(cluster, tmp_path):
    agent = Agent(tmp_path)
    agent.until(lambda _: is_empty(), pools=())  # of tests whose executor is a process of its own
    yield agent
    agent.until(lambda _: is_empty(), pools=())


@pytest.fixture
def executor(cluster, tmp_path, request):
    executor = Process(cluster, tmp_path, getattr(request, "param", "") + EXECUTOR)
    yield executor
    executor.until(lambda reports: True)
    for process in (executor.process, executor.observer):
        process.terminate()
        assert process.wait(20) == 0
    assert executor.exchange.read_pulse() is None


def is_empty():
    """Nothing is left for the next test to take for its own: its pool has the same name."""
    placements = placement_group_table().values()
    return not ray.util.list_named_actors(all_namespaces=True) and all(
        each["state"] == "REMOVED" for each in placements
    )
