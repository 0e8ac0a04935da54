"""Fixtures over the rendered chart."""

import pytest

from tests.unit.chart.helm import Helm, installed_helm


@pytest.fixture(scope="session")
def helm() -> Helm:
    return Helm(installed_helm())


@pytest.fixture(scope="session")
def manifests(helm) -> list[dict]:
    return helm.render()


@pytest.fixture(scope="session")
def find(manifests):
    def find(kind: str, name: str) -> dict:
        (found,) = [each for each in manifests if (each["kind"], each["metadata"]["name"]) == (kind, name)]
        return found

    return find
