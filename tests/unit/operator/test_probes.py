"""What kubelet asks Ray's pods."""

import pytest

from workergroups_operator.templates.probes import with_probes


def container_of(**container):
    spec = with_probes({"containers": [{"name": "ray-worker", **container}, {"name": "sidecar"}]}, "ray-worker")
    assert spec["containers"][1] == {"name": "sidecar"}
    return spec["containers"][0]


def test_they_run_nothing_in_the_image():
    container = container_of()
    for probe in ("livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"] == {"path": "/api/local_raylet_healthz", "port": 52365}


def test_a_users_probe_is_taken_whole():
    theirs = {"exec": {"command": ["true"]}}
    container = container_of(livenessProbe=theirs)
    assert container["livenessProbe"] == theirs
    assert "httpGet" in container["readinessProbe"]


@pytest.mark.parametrize("spec", [{}, {"containers": None}, {"containers": ["odd"]}, {"containers": "odd"}])
def test_what_is_no_pod_is_left_to_the_api_server(spec):
    assert with_probes(spec, "ray-worker") == spec
