"""One node: containerd, kubelet and kube-proxy in their own network and mount namespaces.

The mount namespace gives each node the standard paths (/var/lib/kubelet, /run/containerd, ...) without seeing
the others', and takes every overlay, volume and pod mount with it when the node's last process ends.
"""

import json
import resource
import shutil
import socket
from pathlib import Path

from tools.console import answers, run, say
from tools.local_cluster import cgroups, network, pki, processes
from tools.local_cluster.control_plane import kubectl
from tools.local_cluster.layout import HOST_ADDRESS, LOGS, PAUSE_IMAGE, POD_CIDR, Node

_CRI = "io.containerd.grpc.v1.cri"
_SOCKET = "/run/containerd/containerd.sock"

# restrict_oom_score_adj: without CAP_SYS_RESOURCE, runc fails at every sandbox that would lower the score.
_CONTAINERD_CONFIG = """\
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [{disabled}]
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
"""


def start_containerd(node: Node) -> None:
    """Start a node's containerd with the images that it has, and without containers of an earlier cluster."""
    _write_cni_config(node)
    if _has_stale_containers(node):
        _remove_stale_containers(node)
    _start_containerd(node, disabled="")


def start_kubelet(node: Node, binaries: Path) -> None:
    """Start kubelet and kube-proxy in containerd's mount namespace, without which pods would have no volumes."""
    kubelet_config = node.state / "kubelet.json"
    kubelet_config.write_text(json.dumps(_kubelet_config(node), indent=2))
    kubelet = [str(binaries / "kubelet"), f"--config={kubelet_config}"]
    kubelet += [f"--kubeconfig={pki.kubeconfig(f'kubelet-{node.name}')}", f"--node-ip={node.address}"]
    kubelet += [f"--hostname-override={node.name}"]
    kubelet += [f"--node-labels={','.join(f'{key}={value}' for key, value in node.labels.items())}"]
    # As on real clusters: only pods that request a GPU may run on a GPU node.
    kubelet += [f"--register-with-taints={gpu}=present:NoSchedule" for gpu in node.gpus]
    inside = ["nsenter", f"--target={processes.pid(_containerd(node))}", "--mount", "--net"]
    processes.start(f"kubelet-{node.name}", [*inside, *kubelet])
    proxy_config = node.state / "kube-proxy.json"
    proxy_config.write_text(json.dumps(_proxy_config(node), indent=2))
    processes.start(f"kube-proxy-{node.name}", [*inside, binaries / "kube-proxy", f"--config={proxy_config}"])


def add_gpus(node: Node, binaries: Path) -> None:
    """Add GPUs to a registered node's capacity. Kubelet keeps capacities that it does not know."""
    if node.gpus:
        patch = json.dumps({"status": {"capacity": node.gpus, "allocatable": node.gpus}})
        options = ["--subresource=status", "--type=merge", f"--patch={patch}"]
        kubectl(binaries, "patch", "node", node.name, *options)


def wait_until_registered(node: Node, binaries: Path) -> None:
    """Wait until kubelet has created the node's object."""

    def registered() -> bool:
        return node.name in kubectl(binaries, "get", "nodes", "--output=name")

    processes.wait_for(f"kubelet-{node.name}", f"node {node.name} to register", registered, seconds=60)


def wait_until_ready(node: Node, binaries: Path) -> None:
    """Wait until a node accepts pods, has its GPUs and routes services."""

    def ready() -> bool:
        status = json.loads(kubectl(binaries, "get", "node", node.name, "--output=json"))["status"]
        conditions = {condition["type"]: condition["status"] for condition in status["conditions"]}
        has_gpus = node.gpus.items() <= status["allocatable"].items()
        return conditions.get("Ready") == "True" and has_gpus

    processes.wait_for(f"kubelet-{node.name}", f"node {node.name} to be ready", ready, seconds=90)
    proxy = f"http://{node.address}:10256/healthz"
    waited = f"services to be routed on node {node.name}"
    processes.wait_for(f"kube-proxy-{node.name}", waited, lambda: answers(proxy), seconds=60)


def ctr(node: Node, *arguments: str) -> list[str]:
    """Return a command line for the node's containerd, in the namespace of Kubernetes' images."""
    return ["ctr", "--address", str(node.containerd_socket), "--namespace", "k8s.io", *arguments]


def _containerd(node: Node) -> str:
    return f"containerd-{node.name}"


def _start_containerd(node: Node, *, disabled: str) -> None:
    config = node.state / "containerd.toml"
    config.write_text(_CONTAINERD_CONFIG.format(disabled=disabled, pause=PAUSE_IMAGE))
    script = node.state / "enter.sh"
    script.write_text(_mount_script(node, config))
    unshare = ["unshare", "--mount", "--propagation", "slave", "sh", "-e", str(script)]
    processes.start(_containerd(node), [*network.inside(node), *unshare])
    waited = f"containerd of node {node.name}"
    processes.wait_for(_containerd(node), waited, lambda: _listens(node.containerd_socket), seconds=30)


def _mount_script(node: Node, config: Path) -> str:
    """Write the node's first process, which mounts the node's own directories over the standard paths.

    The kubelet needs shared mounts for volumes that propagate; being slaves of the host's, they never reach it.
    """
    logs = LOGS / "pods" / node.name
    binds = {
        node.image_store: "/var/lib/containerd",
        node.state / "run-containerd": "/run/containerd",
        node.state / "kubelet": "/var/lib/kubelet",
        node.state / "cni": "/var/lib/cni",
        node.state / "cni-config": "/etc/cni",
        logs: "/var/log/pods",
        node.state / "containers": "/var/log/containers",
    }
    lines = ["mount --make-rshared /"]
    for source, target in binds.items():
        source.mkdir(parents=True, exist_ok=True)
        lines += [f"mkdir -p {target}", f"mount --bind '{source}' {target}"]
    return "\n".join([*lines, f"exec containerd --config '{config}'", ""])


def _write_cni_config(node: Node) -> None:
    """Configure the pods' network. Point-to-point links let every packet, also to a service, cross the node."""
    plugin = {
        "type": "ptp",
        "ipam": {"type": "host-local", "subnet": node.pod_subnet, "routes": [{"dst": "0.0.0.0/0"}]},
    }
    directory = node.state / "cni-config" / "net.d"
    directory.mkdir(parents=True)
    content = {"cniVersion": "1.0.0", "name": "pods", "plugins": [plugin]}
    (directory / "10-pods.conflist").write_text(json.dumps(content, indent=2))


def _stale_directories(node: Node) -> list[Path]:
    return [node.image_store / _CRI / "containers", node.image_store / _CRI / "sandboxes"]


def _has_stale_containers(node: Node) -> bool:
    return any(directory.is_dir() and any(directory.iterdir()) for directory in _stale_directories(node))


def _remove_stale_containers(node: Node) -> None:
    """Remove an earlier cluster's containers before the CRI plugin runs, which would show them to kubelet."""
    say(f"removing the containers that an earlier cluster left in {node.image_store}")
    _start_containerd(node, disabled=f'"{_CRI}"')
    containers = run(ctr(node, "containers", "list", "--quiet")).split()
    if containers:
        run(ctr(node, "containers", "delete", *containers))
    processes.stop(_containerd(node))
    for directory in (*_stale_directories(node), node.image_store / "io.containerd.runtime.v2.task"):
        shutil.rmtree(directory, ignore_errors=True)


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
        return True


def _kubelet_config(node: Node) -> dict[str, object]:
    never = {"memory.available": "100Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%"}
    never |= {"imagefs.available": "0%", "imagefs.inodesFree": "0%"}
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": str(pki.CA)}},
        "authorization": {"mode": "Webhook"},
        "address": node.address,
        "clusterDomain": "cluster.local",
        "clusterDNS": [HOST_ADDRESS],
        "resolvConf": "",
        "containerRuntimeEndpoint": f"unix://{_SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroups.kubelet_root(node.name),
        "failCgroupV1": False,
        "makeIPTablesUtilChains": False,
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        # Images cannot be pulled again, so they are never collected, and a full disk evicts nothing.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": never,
        "localStorageCapacityIsolation": False,
        # Neither can be raised or lowered without CAP_SYS_RESOURCE.
        "maxOpenFiles": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        "oomScoreAdj": 0,
    }


def _proxy_config(node: Node) -> dict[str, object]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(pki.kubeconfig("kube-proxy"))},
        "hostnameOverride": node.name,
        "mode": "nftables",
        # Connections from elsewhere, as from the host, are masqueraded, since their answers must pass this node again.
        "clusterCIDR": POD_CIDR,
        "oomScoreAdj": 0,
        # These belong to the machine, and cannot be set in a network namespace.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
