"""Certificates and kubeconfigs: one authority, and one identity for each component."""

import base64
import json
from pathlib import Path

from tools.console import run
from tools.local_cluster.layout import (
    ADMIN_KUBECONFIG,
    API_SERVER,
    API_SERVICE_ADDRESS,
    HOST_ADDRESS,
    NODES,
    STATE,
)

DIRECTORY = STATE / "pki"
CA = DIRECTORY / "ca.crt"

_OPENSSL_CONFIG = """\
[req]
distinguished_name = subject
x509_extensions = extensions
prompt = no
[subject]
[extensions]
"""
_AUTHORITY = "basicConstraints = critical,CA:TRUE\nkeyUsage = critical,keyCertSign,cRLSign\n"
_IDENTITY = "basicConstraints = critical,CA:FALSE\nextendedKeyUsage = clientAuth,serverAuth\n"
_NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def create() -> None:
    """Create the authority, the API server's certificates and a kubeconfig for each client."""
    DIRECTORY.mkdir(parents=True, mode=0o700)
    _certificate("ca", "/CN=workergroups-local-cluster", _AUTHORITY)
    names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"]
    addresses = [HOST_ADDRESS, API_SERVICE_ADDRESS]
    alternatives = ",".join([*(f"DNS:{name}" for name in names), *(f"IP:{address}" for address in addresses)])
    _signed("apiserver", "/CN=kube-apiserver", f"subjectAltName = {alternatives}\n")
    _signed("apiserver-kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client")
    _signed("service-accounts", "/CN=service-accounts")
    for name in ("kube-controller-manager", "kube-scheduler", "kube-proxy", "coredns"):
        _kubeconfig(name, f"/CN=system:{name}")
    for name in ("admin", "kuberay-operator"):
        _kubeconfig(name, f"/O=system:masters/CN={name}")
    for node in NODES:
        _kubeconfig(f"kubelet-{node.name}", f"/O=system:nodes/CN=system:node:{node.name}")


def kubeconfig(name: str) -> Path:
    """Return the path of a component's kubeconfig."""
    return ADMIN_KUBECONFIG.with_name(f"{name}.kubeconfig")


def certificate(name: str) -> tuple[Path, Path]:
    """Return the paths of a certificate and its key."""
    return DIRECTORY / f"{name}.crt", DIRECTORY / f"{name}.key"


def _signed(name: str, subject: str, extensions: str = "") -> None:
    authority, key = certificate("ca")
    _certificate(name, subject, _IDENTITY + extensions, "-CA", authority, "-CAkey", key)


def _certificate(name: str, subject: str, extensions: str, *signer: str | Path) -> None:
    """Create a key and its certificate. All extensions come from a file here, none from the system's openssl.cnf."""
    config = DIRECTORY / f"{name}.cnf"
    config.write_text(_OPENSSL_CONFIG + extensions)
    certificate_file, key = certificate(name)
    request = ["openssl", "req", "-x509", *_NEW_KEY, "-subj", subject, "-days", "3650", "-config", str(config)]
    run([*request, *signer, "-keyout", key, "-out", certificate_file])


def _kubeconfig(name: str, subject: str) -> None:
    """Write a self-contained kubeconfig as JSON, which every YAML parser reads."""
    _signed(name, subject)
    certificate_file, key = certificate(name)
    user = {"client-certificate-data": _base64(certificate_file), "client-key-data": _base64(key)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": {"server": API_SERVER, "certificate-authority-data": _base64(CA)}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": name}}],
        "current-context": "local",
    }
    path = kubeconfig(name)
    path.touch(mode=0o600)
    path.write_text(json.dumps(content, indent=2))


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
