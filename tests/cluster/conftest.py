"""The running cluster, by kubeconfig; each test module has its own namespace, and leaves nothing behind."""

import uuid
from pathlib import Path

import pytest

from tests.cluster.kubectl import Namespace, config_map, kubectl

ACCUMULATOR = (Path(__file__).parent / "accumulator.py").read_text()


@pytest.fixture(scope="module")
def namespace():
    name = f"test-{uuid.uuid4().hex[:8]}"
    kubectl("create", "namespace", name)
    namespace = Namespace(name)
    namespace.apply(config_map("accumulator", accumulator=ACCUMULATOR))
    yield namespace
    kubectl("delete", "namespace", name, "--wait=true", "--timeout=120s", timeout=130)


@pytest.fixture
def clean(namespace):
    """Nothing of this test's is left for the next one, whose devices would be taken."""
    yield
    namespace.run("delete", "resourcepools,workergroups", "--all", "--wait=true", "--timeout=60s")
    namespace.until(lambda: namespace.get("pods"), lambda pods: not pods, 90)
