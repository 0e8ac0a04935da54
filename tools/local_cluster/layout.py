"""The files, the addresses and the three nodes."""

import os
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent

# Binaries, images and what the nodes have imported. Survives `up` and `down`; `down --purge` removes it.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "workergroups" / "local-cluster"

# The running cluster: certificates, etcd's data, logs, pod directories. `down` removes it.
STATE = Path("/var/lib/workergroups-cluster")
LOGS = STATE / "logs"
ADMIN_KUBECONFIG = STATE / "pki" / "admin.kubeconfig"

# All addresses are private: the bridge has no route out of the machine. Nodes are numbered 8 to 15, so
# that the subnets of their pods are one range.
HOST_ADDRESS = "10.213.0.1"
POD_CIDR = "10.213.8.0/21"
SERVICE_CIDR = "10.213.128.0/20"
API_SERVICE_ADDRESS = "10.213.128.1"
API_PORT = 6443
API_SERVER = f"https://{HOST_ADDRESS}:{API_PORT}"
ETCD_CLIENT = "http://127.0.0.1:23790"
ETCD_PEER = "http://127.0.0.1:23800"
DNS_READY_PORT = 8181
KUBERAY_PROBE = "127.0.0.1:18082"

PAUSE_IMAGE = "localhost/workergroups-pause:1"


@dataclass(frozen=True)
class Node:
    """One node: a network and mount namespace with a containerd, a kubelet and a kube-proxy."""

    name: str
    number: int
    labels: dict[str, str]
    gpus: dict[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The node's address on the cluster's bridge."""
        return f"10.213.0.{self.number}"

    @property
    def pod_subnet(self) -> str:
        """The addresses of the node's pods; every other node has a route to them."""
        return f"10.213.{self.number}.0/24"

    @property
    def namespace(self) -> str:
        """The name of the node's network namespace."""
        return f"wg-{self.name}"

    @property
    def state(self) -> Path:
        """The node's part of the running cluster, removed by `down`."""
        return STATE / "nodes" / self.name

    @property
    def image_store(self) -> Path:
        """containerd's root, which outlives the cluster, so that each image is imported once."""
        return CACHE / "nodes" / self.name

    @property
    def containerd_socket(self) -> Path:
        """containerd's socket as seen from the host; within the node it is at containerd's usual path."""
        return self.state / "run-containerd" / "containerd.sock"


NODES = (
    Node("plain", 11, {"workergroups.dev/node": "plain"}),
    Node(
        "nvidia",
        12,
        {"workergroups.dev/node": "nvidia", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
        {"nvidia.com/gpu": "4"},
    ),
    Node(
        "amd",
        13,
        {"workergroups.dev/node": "amd", "amd.com/gpu.product-name": "AMD-Instinct-MI300X"},
        {"amd.com/gpu": "4"},
    ),
)
