"""Fixtures over the rendered chart."""

import shutil

import pytest

from tests.unit.chart.helm import Helm, local_clusters_helm


@pytest.fixture(scope="session")
def helm() -> Helm:
    binary = shutil.which("helm") or local_clusters_helm()
    assert binary, "there is no helm: put one on PATH, or run `make cluster-up`, which builds one"
    return Helm(binary)


@pytest.fixture(scope="session")
def manifests(helm) -> list[dict]:
    return helm.render()


@pytest.fixture(scope="session")
def find(manifests):
    def find(kind: str, name: str) -> dict:
        (found,) = [each for each in manifests if (each["kind"], each["metadata"]["name"]) == (kind, name)]
        return found

    return find
