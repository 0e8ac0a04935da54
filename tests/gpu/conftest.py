"""A Ray with a head without devices, and one node of a pool that has all GPUs of this machine."""

import pytest
import ray
from ray._private import services
from ray.cluster_utils import Cluster

from tests.ray.agent.conftest import agent  # noqa: F401
from tests.ray.agent.planned import NODE_GROUP
from tests.ray.conftest import ray_environment  # noqa: F401
from workergroups.naming import NAMESPACE
from workergroups_agent.ray_start import our_start_process
from workergroups_api.vocabulary import Variable


@pytest.fixture(scope="session")
def gpus():
    """How many there are."""
    torch = pytest.importorskip("torch")
    assert torch.cuda.device_count() >= 2, "these tests need a machine with two NVIDIA GPUs"
    return torch.cuda.device_count()


@pytest.fixture(scope="module")
def cluster(gpus, ray_environment, tmp_path_factory):  # noqa: F811
    ray_environment.setenv(Variable.GROUP_ENV_DIRECTORY.value, str(tmp_path_factory.mktemp("group-env")))
    # Raylets start processes as they do in pods.
    ray_environment.setattr(services, "start_ray_process", our_start_process(services.start_ray_process))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "num_gpus": 0, "include_dashboard": False})
    cluster.add_node(num_cpus=40, num_gpus=gpus, labels={"ray.io/node-group": NODE_GROUP})
    ray.init(address=cluster.address, namespace=NAMESPACE, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()
