"""Kubeconfigs and certificates for connections to a server on this machine."""

import json
import os

import pytest

from tests.unit.client.api_server import Authority, kubeconfig


@pytest.fixture
def configure(tmp_path, monkeypatch):
    """Write the only kubeconfig, and let no proxy be in between; arguments as for `kubeconfig`."""
    for name in os.environ:
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    path = tmp_path / "config"
    monkeypatch.setenv("KUBECONFIG", str(path))
    return lambda *arguments, **more: path.write_text(json.dumps(kubeconfig(*arguments, **more)))


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))
