"""An API server with the real Kueue and the real KubeRay; queues of each test's own."""

import pytest

from tests.api.conftest import namespace_labels, pytest_pyfunc_call, runner, scene  # noqa: F401 (fixtures, and a hook)
from tests.kueue.kueue import kueue
from tests.kueue.queues import Queues
from tests.simulation.control_plane import control_plane


@pytest.fixture(scope="session")
def access(tmp_path_factory):
    """The API server, with Kubernetes' controllers, KubeRay and Kueue."""
    with control_plane() as running, kueue(running, tmp_path_factory.mktemp("kueue")):
        yield running


@pytest.fixture
def queues(scene, runner):  # noqa: F811
    """Of the test's own namespace; they are removed afterwards, since most of Kueue's objects have no namespace."""
    queues = Queues(scene.api, scene.namespace)
    yield queues
    runner.run(queues.remove())
