"""The running cluster, by kubeconfig; each test module has a namespace of its own, and leaves nothing behind."""

import uuid
from pathlib import Path

import pytest
from kubectl import Namespace, config_map, kubectl

ACCUMULATOR = (Path(__file__).parent / "accumulator.py").read_text()


@pytest.fixture(scope="module")
def namespace():
    name = f"test-{uuid.uuid4().hex[:8]}"
    kubectl("create", "namespace", name)
    namespace = Namespace(name)
    namespace.apply(config_map("accumulator", accumulator=ACCUMULATOR))
    yield namespace
    kubectl("delete", "namespace", name, "--wait=true", "--timeout=120s", timeout=130)
