"""The control plane: etcd, the API server and its clients, as processes on the host."""

from pathlib import Path

from tools.console import ToolError, answers, run
from tools.local_cluster import pki, processes
from tools.local_cluster.api_server import ApiServer, command_line
from tools.local_cluster.layout import (
    ADMIN_KUBECONFIG,
    API_PORT,
    DNS_READY_PORT,
    ETCD_CLIENT,
    ETCD_PEER,
    HERE,
    HOST_ADDRESS,
    KUBERAY_PROBE,
    SERVICE_CIDR,
    STATE,
)

_SERVER = ApiServer(
    address=HOST_ADDRESS,
    port=API_PORT,
    etcd_client=ETCD_CLIENT,
    etcd_peer=ETCD_PEER,
    etcd_data=STATE / "etcd",
    service_addresses=SERVICE_CIDR,
    serving=pki.certificate("apiserver"),
    signing=pki.certificate("service-accounts"),
    issuer="https://kubernetes.default.svc.cluster.local",
)


def start_api_server(binaries: Path) -> None:
    """Start etcd and the API server, and wait for the API server to be ready."""
    processes.start("etcd", _SERVER.etcd(binaries))
    processes.start("kube-apiserver", _SERVER.kube_apiserver(binaries, _access()))
    processes.wait_for("kube-apiserver", "the API server to be ready", lambda: ready(binaries), seconds=90)


def start_controllers(binaries: Path) -> None:
    """Start the controllers and the scheduler."""
    flags: dict[str, str | Path] = {
        "kubeconfig": pki.kubeconfig("kube-controller-manager"),
        "bind-address": "127.0.0.1",
        "leader-elect": "false",
        "root-ca-file": pki.CA,
        "service-account-private-key-file": pki.certificate("service-accounts")[1],
        "use-service-account-credentials": "true",
    }
    processes.start("kube-controller-manager", command_line(binaries / "kube-controller-manager", flags))
    flags = {"kubeconfig": pki.kubeconfig("kube-scheduler"), "bind-address": "127.0.0.1", "leader-elect": "false"}
    processes.start("kube-scheduler", command_line(binaries / "kube-scheduler", flags))


def start_dns(binaries: Path) -> None:
    """Start CoreDNS on the host's address on the bridge, which is every pod's resolver."""
    corefile = STATE / "Corefile"
    corefile.write_text(_corefile())
    kubectl(binaries, "apply", "--server-side", "--filename", HERE / "coredns-rbac.yaml")
    processes.start("coredns", [binaries / "coredns", "-conf", corefile])


def start_kuberay(binaries: Path) -> None:
    """Install KubeRay's resource definitions and start its operator against the API server.

    A client-side apply would fail: the definitions are too long for its annotation.
    """
    kubectl(binaries, "apply", "--server-side", "--filename", binaries / "crds")
    flags = {
        "metrics-addr": "127.0.0.1:18080",
        "health-probe-bind-address": KUBERAY_PROBE,
        "enable-leader-election": "false",
        "use-kubernetes-proxy": "true",
    }
    environment = {"KUBECONFIG": str(pki.kubeconfig("kuberay-operator"))}
    processes.start("kuberay-operator", command_line(binaries / "ray-operator", flags), env=environment)


def wait_until_usable(binaries: Path) -> None:
    """Wait until pods can be created, and CoreDNS and KubeRay have listed their objects."""

    def has_service_account() -> bool:
        return kubectl(binaries, "get", "serviceaccounts", "--output=name") != ""

    waited = "the default service account, which every pod needs"
    processes.wait_for("kube-controller-manager", waited, has_service_account, seconds=60)
    dns = f"http://{HOST_ADDRESS}:{DNS_READY_PORT}/ready"
    processes.wait_for("coredns", "CoreDNS to be ready", lambda: answers(dns), seconds=60)
    kuberay = f"http://{KUBERAY_PROBE}/readyz"
    processes.wait_for("kuberay-operator", "KubeRay to be ready", lambda: answers(kuberay), seconds=60)


def ready(binaries: Path) -> bool:
    """Return whether the API server reports that it is ready."""
    try:
        return kubectl(binaries, "get", "--raw", "/readyz") == "ok"
    except ToolError:
        return False


def kubectl(binaries: Path, *arguments: str | Path) -> str:
    """Run kubectl as the cluster's administrator."""
    return run([binaries / "kubectl", "--kubeconfig", ADMIN_KUBECONFIG, *arguments])


def _corefile() -> str:
    """Write CoreDNS's configuration. Names outside the cluster do not exist: an error is better than a timeout."""
    return f"""\
cluster.local in-addr.arpa {{
    bind {HOST_ADDRESS}
    ready {HOST_ADDRESS}:{DNS_READY_PORT}
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {pki.kubeconfig("coredns")} local
        pods insecure
        ttl 5
    }}
    errors
}}
. {{
    bind {HOST_ADDRESS}
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
"""


def _access() -> dict[str, object]:
    """Return the API server's flags for what it accepts and how it reaches kubelets and webhooks."""
    kubelet_certificate, kubelet_key = pki.certificate("apiserver-kubelet-client")
    return {
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "client-ca-file": pki.CA,
        "kubelet-client-certificate": kubelet_certificate,
        "kubelet-client-key": kubelet_key,
        "kubelet-preferred-address-types": "InternalIP",
        # Call webhooks at their pods, not through the node that translates for the host.
        "enable-aggregator-routing": "true",
    }
