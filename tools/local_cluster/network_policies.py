"""NetworkPolicies that are enforced: kube-router's policy controller, a process for each node. For tests only.

The cluster's own network enforces none, and starts faster without it.
"""

from functools import partial

from tools.console import ToolError, answers, run
from tools.local_cluster import components, network, packages, processes
from tools.local_cluster.layout import ADMIN_KUBECONFIG, HERE, NODES, SERVICE_CIDR, Node

MODULE = HERE / "kube_router"
_PACKAGES = {"iptables": "iptables", "ipset": "ipset"}
_HEALTH_PORT = 20244


def enforce() -> None:
    """Start the controllers that do not run, and wait until they have set all policies."""
    if not ADMIN_KUBECONFIG.exists():
        raise ToolError("the cluster is down: start it with `python3 -m tools.local_cluster up`")
    packages.install(_PACKAGES)
    binary = components.tool(MODULE)
    for node in NODES:
        if processes.pid(_name(node)) is None:
            processes.start(_name(node), [*network.inside(node), binary, *_options(node)])
    for node in NODES:
        health = f"http://{node.address}:{_HEALTH_PORT}/healthz"
        waited = f"NetworkPolicies to be enforced on node {node.name}"
        processes.wait_for(_name(node), waited, partial(answers, health), seconds=60)


def stop_enforcing() -> None:
    """Stop the controllers, and remove what they have set: nobody else uses iptables or ipset on these nodes.

    kube-router's own clean-up ends with a panic where its proxy of services was never used.
    """
    for node in NODES:
        processes.stop(_name(node))
        for command in (["iptables", "--flush"], ["iptables", "--delete-chain"], ["ipset", "destroy"]):
            run([*network.inside(node), *command])


def _name(node: Node) -> str:
    return f"kube-router-{node.name}"


def _options(node: Node) -> list[str]:
    return [
        "--run-firewall=true",
        "--run-router=false",
        "--run-service-proxy=false",
        f"--kubeconfig={ADMIN_KUBECONFIG}",
        f"--hostname-override={node.name}",
        f"--service-cluster-ip-range={SERVICE_CIDR}",
        f"--health-port={_HEALTH_PORT}",
    ]
