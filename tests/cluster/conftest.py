"""The running cluster, by kubeconfig; each test module has its own namespace, and leaves nothing behind."""

from pathlib import Path

import pytest

from tests.cluster.kubectl import config_map, new_namespace

ACCUMULATOR = (Path(__file__).parent / "accumulator.py").read_text()


@pytest.fixture(scope="module")
def namespace():
    with new_namespace("test") as namespace:
        namespace.apply(config_map("accumulator", accumulator=ACCUMULATOR))
        yield namespace


@pytest.fixture
def clean(namespace):
    """Nothing of this test's is left for the next one, whose devices would be taken."""
    yield
    namespace.run("delete", "resourcepools,workergroups", "--all", "--wait=true", "--timeout=60s")
    namespace.until(lambda: namespace.get("pods"), lambda pods: not pods, 90)
