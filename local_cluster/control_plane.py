"""The control plane: etcd, the API server and its clients, as processes on the host."""

from collections.abc import Mapping
from pathlib import Path

from local_cluster import pki, processes
from local_cluster.console import ClusterError, answers, run
from local_cluster.layout import (
    ADMIN_KUBECONFIG,
    API_SERVER,
    DNS_READY_PORT,
    ETCD_CLIENT,
    ETCD_PEER,
    HERE,
    HOST_ADDRESS,
    KUBERAY_PROBE,
    SERVICE_CIDR,
    STATE,
)


def start_api_server(binaries: Path) -> None:
    """Start etcd and the API server, and wait for the API server to be ready."""
    etcd_flags: dict[str, str | Path] = {
        "name": "local",
        "data-dir": STATE / "etcd",
        "listen-client-urls": ETCD_CLIENT,
        "advertise-client-urls": ETCD_CLIENT,
        "listen-peer-urls": ETCD_PEER,
        "initial-advertise-peer-urls": ETCD_PEER,
        "initial-cluster": f"local={ETCD_PEER}",
        "unsafe-no-fsync": "true",
    }
    processes.start("etcd", [binaries / "etcd", *_flags(etcd_flags)])
    processes.start("kube-apiserver", [binaries / "kube-apiserver", *_flags(_api_server_flags())])
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
    processes.start("kube-controller-manager", [binaries / "kube-controller-manager", *_flags(flags)])
    flags = {"kubeconfig": pki.kubeconfig("kube-scheduler"), "bind-address": "127.0.0.1", "leader-elect": "false"}
    processes.start("kube-scheduler", [binaries / "kube-scheduler", *_flags(flags)])


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
    processes.start("kuberay-operator", [binaries / "ray-operator", *_flags(flags)], env=environment)


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
    except ClusterError:
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


def _api_server_flags() -> dict[str, str | Path]:
    certificate, key = pki.certificate("apiserver")
    kubelet_certificate, kubelet_key = pki.certificate("apiserver-kubelet-client")
    token_certificate, token_key = pki.certificate("service-accounts")
    return {
        "etcd-servers": ETCD_CLIENT,
        "bind-address": HOST_ADDRESS,
        "advertise-address": HOST_ADDRESS,
        "secure-port": API_SERVER.rpartition(":")[2],
        "service-cluster-ip-range": SERVICE_CIDR,
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "allow-privileged": "true",
        "client-ca-file": pki.CA,
        "tls-cert-file": certificate,
        "tls-private-key-file": key,
        "kubelet-client-certificate": kubelet_certificate,
        "kubelet-client-key": kubelet_key,
        "kubelet-preferred-address-types": "InternalIP",
        "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        "service-account-key-file": token_certificate,
        "service-account-signing-key-file": token_key,
        # Call webhooks at their pods, not through the node that translates for the host.
        "enable-aggregator-routing": "true",
    }


def _flags(values: Mapping[str, str | Path]) -> list[str]:
    return [f"--{name}={value}" for name, value in values.items()]
