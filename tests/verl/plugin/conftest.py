"""A pool's nodes on this machine, with four GPUs each that are only numbers."""

import pytest
import ray
from ray.cluster_utils import Cluster

from tests.ray.agent.planned import NODE_GROUP, Agent
from tests.ray.conftest import ray_environment  # noqa: F401
from workergroups.naming import NAMESPACE


@pytest.fixture(scope="module")
def cluster(request, ray_environment):  # noqa: F811
    """A head as small as in pods, and two nodes of a pool. A test file may set Ray's ENVIRONMENT."""
    for name, value in getattr(request.module, "ENVIRONMENT", {}).items():
        ray_environment.setenv(name, value)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    for _ in range(2):
        cluster.add_node(num_cpus=50, num_gpus=4, labels={"ray.io/node-group": NODE_GROUP})
    yield cluster
    cluster.shutdown()


@pytest.fixture
def agent(cluster, tmp_path):
    """The agent. What a test has taken ends with its job."""
    ray.init(address=cluster.address, namespace=NAMESPACE, log_to_driver=False)
    agent = Agent(tmp_path)
    yield agent
    agent.until(lambda said: not said.pools, pools=())
    ray.shutdown()
