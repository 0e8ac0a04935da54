"""The cluster's network: one bridge, and a network namespace on it for each node.

With its own namespace, a node has the standard ports, its own conntrack and nftables tables, and no route to
anything but the cluster. Removing the namespace removes all of that at once.
"""

from contextlib import suppress
from pathlib import Path

from tools.console import ToolError, run
from tools.local_cluster.layout import HOST_ADDRESS, NODES, SERVICE_CIDR, Node

_BRIDGE = "wg-bridge"
_NAMESPACES = Path("/run/netns")


def create() -> None:
    """Create the bridge and the nodes' namespaces, with routes from everywhere to every node's pods.

    The host has no kube-proxy: the first node translates the host's connections to services.
    """
    run(["ip", "link", "add", _BRIDGE, "type", "bridge"])
    run(["ip", "address", "add", f"{HOST_ADDRESS}/24", "dev", _BRIDGE])
    run(["ip", "link", "set", _BRIDGE, "up"])
    for node in NODES:
        _create_node(node)
        run(["ip", "route", "add", node.pod_subnet, "via", node.address])
    run(["ip", "route", "add", SERVICE_CIDR, "via", NODES[0].address])


def inside(node: Node) -> list[str]:
    """Return the beginning of a command line that runs in a node's network namespace."""
    return ["nsenter", f"--net={_NAMESPACES / node.namespace}"]


def remove() -> None:
    """Remove the namespaces and the bridge that exist, and with them links and routes."""
    for node in NODES:
        with suppress(ToolError):
            run(["ip", "netns", "delete", node.namespace])
        with suppress(ToolError):
            run(["ip", "link", "delete", _host_link(node)])
    with suppress(ToolError):
        run(["ip", "link", "delete", _BRIDGE])
    if _NAMESPACES.exists() and not any(_NAMESPACES.iterdir()):
        with suppress(ToolError):  # `ip netns` mounts the directory; other tools may only create it
            run(["umount", _NAMESPACES])


def leftovers() -> list[str]:
    """Return the parts of the network that exist."""
    namespaces = [node.namespace for node in NODES if (_NAMESPACES / node.namespace).exists()]
    ours = {_BRIDGE, *(_host_link(node) for node in NODES)}
    links = sorted(link.name for link in Path("/sys/class/net").iterdir() if link.name in ours)
    return [f"network namespace {name}" for name in namespaces] + [f"network link {name}" for name in links]


def _host_link(node: Node) -> str:
    return f"wg-{node.name}"


def _create_node(node: Node) -> None:
    """Connect one node, with pods behind it. It has no default route: nothing here can leave the machine."""
    run(["ip", "netns", "add", node.namespace])
    peer = ["type", "veth", "peer", "name", "eth0", "netns", node.namespace]
    run(["ip", "link", "add", _host_link(node), "master", _BRIDGE, *peer])
    run(["ip", "link", "set", _host_link(node), "up"])
    within = ["ip", "-netns", node.namespace]
    run([*within, "address", "add", f"{node.address}/24", "dev", "eth0"])
    run([*within, "link", "set", "eth0", "up"])
    run([*within, "link", "set", "lo", "up"])
    for other in NODES:
        if other != node:
            run([*within, "route", "add", other.pod_subnet, "via", other.address])
    run([*inside(node), "sysctl", "--quiet", "--write", "net.ipv4.ip_forward=1"])
