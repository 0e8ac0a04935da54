"""What is asked of kind, docker and helm: images for the nodes that need them, and what variables name."""

import pytest

from tools.demo.clusters import kind

NODES = {
    "workergroups.dev/node in (plain,nvidia)": "worker worker2",
    "workergroups.dev/node=plain": "worker",
    "nvidia.com/gpu.product": "worker2",
    "amd.com/gpu.product-name": "worker3",
}


@pytest.fixture
def asked(monkeypatch):
    """Command lines, as far as they would have been run; nodes have the names above."""
    lines = []

    def run(argv, *_, **__):
        lines.append(" ".join(argv))
        if argv[:3] == ["kubectl", "get", "nodes"]:
            return NODES[argv[3].partition("=")[2]]
        return "sha256:0123456789abcdef\n" if argv[:2] == ["docker", "build"] else ""

    monkeypatch.setattr(kind, "run", run)
    for variable in ("KIND_NODE_IMAGE", "KUBERAY_CHART", "BASE_IMAGE"):
        monkeypatch.delenv(variable, raising=False)
    return lines


def those(lines, begin):
    return [line for line in lines if line.startswith(begin)]


def test_images_are_loaded_to_the_nodes_that_need_them(asked):
    images = kind.KindCluster().provide_images(["nvidia"])
    assert images.operator == "workergroups-operator:0123456789ab"
    assert [line.rpartition(" --nodes=")[2] for line in those(asked, "kind load")] == ["worker,worker2"] * 2


def test_images_for_tests_are_loaded_to_the_plain_node(asked):
    images = kind.KindCluster().provide_test_images()
    assert sorted(images) == ["OLDEST_RAY_IMAGE", "TOO_OLD_RAY_IMAGE"]
    assert [line.rpartition(" --nodes=")[2] for line in those(asked, "kind load")] == ["worker"] * 2


def test_nothing_is_named_that_no_variable_names(asked, tmp_path, monkeypatch):
    monkeypatch.setattr(kind, "_KUBECONFIG", tmp_path / "kind.kubeconfig")
    kind.KindCluster().start()
    kind.KindCluster().provide_test_images()
    assert not [line for line in asked if "--image" in line or "BASE_IMAGE" in line]
    (helm,) = those(asked, "helm")
    assert "--repo=" in helm


def test_variables_name_what_cannot_be_pulled(asked, tmp_path, monkeypatch):
    monkeypatch.setattr(kind, "_KUBECONFIG", tmp_path / "kind.kubeconfig")
    for variable, value in {"KIND_NODE_IMAGE": "node:1", "KUBERAY_CHART": "/chart", "BASE_IMAGE": "python:1"}.items():
        monkeypatch.setenv(variable, value)
    kind.KindCluster().start()
    kind.KindCluster().provide_test_images()
    (create,), (helm,) = those(asked, "kind create"), those(asked, "helm")
    assert "--image=node:1" in create
    assert "kuberay-operator /chart" in helm
    assert "--repo=" not in helm
    assert ["--build-arg=BASE_IMAGE=python:1" in line for line in those(asked, "docker build")] == [True] * 2


def test_nodes_with_devices_take_only_pods_that_ask_for_them(asked, tmp_path, monkeypatch):
    monkeypatch.setattr(kind, "_KUBECONFIG", tmp_path / "kind.kubeconfig")
    kind.KindCluster().start()
    assert those(asked, "kubectl taint") == [
        "kubectl taint node worker2 nvidia.com/gpu=present:NoSchedule --overwrite",
        "kubectl taint node worker3 amd.com/gpu=present:NoSchedule --overwrite",
    ]
