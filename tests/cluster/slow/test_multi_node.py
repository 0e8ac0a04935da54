"""examples/multi-node, with its 16 devices as numbers in the capacity of one Kubernetes node."""

import json
import os
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from tests.cluster.command_line import CommandLine
from tests.cluster.kubectl import kubectl
from tests.cluster.packages import mounted

EXAMPLE = Path(__file__).parents[3] / "examples" / "multi-node"
PACKAGES = mounted(Path(find_spec("torch").origin).parents[1])
LABEL = "nvidia.com/gpu.product=NVIDIA-A100-SXM4-80GB"
DEVICES = "test.workergroups.dev/gpu"
# What this machine has not: the example's image, and its memory.
SMALLER = [
    {"op": "remove", "path": "/spec/image"},
    {
        "op": "replace",
        "path": "/spec/resources",
        "value": {"requests": {"memory": "512Mi"}, "limits": {"memory": "8Gi"}},
    },
    {"op": "replace", "path": "/spec/head/resources/requests/memory", "value": "2Gi"},
    {"op": "add", "path": "/spec/accelerator/resourceName", "value": DEVICES},
    {"op": "add", "path": "/spec/tolerations", "value": [{"key": "nvidia.com/gpu", "operator": "Exists"}]},
    *({"op": "add", "path": f"/spec/{field}/-", "value": each} for field in PACKAGES for each in PACKAGES[field]),
]


@pytest.fixture(scope="module")
def devices(namespace):
    """16 devices on one Kubernetes node."""
    node = namespace.node_with(LABEL)
    set_capacity(node, "16")
    yield
    set_capacity(node, None)


def set_capacity(node, count):
    amounts = {DEVICES: count}
    patch = json.dumps({"status": {"capacity": amounts, "allocatable": amounts}})
    kubectl("patch", "node", node, "--subresource=status", "--type=merge", f"--patch={patch}")


@pytest.fixture(scope="module")
def storage(namespace, tmp_path_factory):
    """What a storage class would create for the example's claim: one directory for all nodes, as on NFS."""
    directory = tmp_path_factory.mktemp("checkpoints")
    directory.chmod(0o777)
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": namespace.name},
        "spec": {
            "capacity": {"storage": "1Ti"},
            "accessModes": ["ReadWriteMany"],
            "hostPath": {"path": str(directory)},
            "claimRef": {"namespace": namespace.name, "name": "checkpoints"},
        },
    }
    kubectl("apply", "-f", "-", stdin=json.dumps(volume))
    yield directory
    kubectl("delete", "persistentvolume", namespace.name, "--wait=false")


def overlay(folder):
    """Write a kustomization over the example."""
    (folder / "kustomization.yaml").write_text(
        yaml.safe_dump(
            {
                "resources": [os.path.relpath(EXAMPLE, folder)],
                "patches": [{"target": {"kind": "ResourcePool"}, "patch": json.dumps(SMALLER)}],
            }
        )
    )


def test_two_nodes_of_eight_sum_up_their_numbers(namespace, clean, devices, storage, tmp_path):
    overlay(tmp_path)
    run = CommandLine(namespace, tmp_path)
    namespace.run("create", "secret", "generic", "wandb", "--from-literal=WANDB_API_KEY=x")
    assert run("up", "-f", ".").endswith(": ready\n")
    submit = ("job", "submit", "ray-verl-cluster", f"--working-dir={EXAMPLE}")
    assert "16 ranks have summed up their numbers: 120\n" in run(*submit, "--", "python", "driver.py")
    run("exec", "ray-verl-cluster", "--every-node", "--", "sh", "-c", "touch /checkpoints/$HOSTNAME")
    nodes = namespace.get("pods", selector="workergroups.dev/component=worker")
    assert sorted(file.name for file in storage.iterdir()) == sorted(node["metadata"]["name"] for node in nodes)
    assert len(nodes) == 2
