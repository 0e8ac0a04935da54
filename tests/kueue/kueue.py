"""The real Kueue, as a process next to the API server of these tests: its kinds, its webhooks, its scheduler."""

import base64
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.api.kueue_contract import certificate
from tests.simulation.control_plane import Access, free_ports
from tools.local_cluster import components

MODULE = Path(__file__).parent / "go"
START_SECONDS = 90
# Of its webhooks, only these are registered: the others are for kinds that it does not serve here.
SERVED = {"clusterqueues", "cohorts", "localqueues", "rayclusters", "resourceflavors", "workloads"}
# With certificates of one's own, it looks for them in fixed places, for its metrics and for its visibility API. It gets
# a root and an /etc of its own, so that nothing is written to the machine's.
START = """
mkdir upper work root
mount -t overlay overlay -o lowerdir=/etc,upperdir=$PWD/upper,workdir=$PWD/work /etc
mount -t tmpfs tmpfs root
for each in /*/; do mkdir root$each; mount --rbind $each root$each; done
mkdir -p /etc/kueue/metrics/certs root/visibility
cp tls.crt tls.key /etc/kueue/metrics/certs
cp tls.crt tls.key root/visibility
exec chroot root "$@"
"""


@contextmanager
def kueue(access: Access, directory: Path, *gates: str) -> Iterator[None]:
    """Install the kinds and the webhooks, and run the manager within the context."""
    source = components.source("sigs.k8s.io/kueue", MODULE)
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(json.dumps(access.kubeconfig("controllers")))
    kubectl = [str(shutil.which("kubectl", path=components.binaries())), f"--kubeconfig={kubeconfig}"]
    apply = [*kubectl, "apply", "--server-side", "--filename"]
    made, key = certificate(directory)
    made.rename(directory / "tls.crt")
    key.rename(directory / "tls.key")
    subprocess.run([*apply, source / "config" / "components" / "crd" / "bases"], check=True, capture_output=True)
    established = ["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]
    subprocess.run([*kubectl, *established], check=True, capture_output=True)
    webhook, health, visibility = free_ports(3)
    (directory / "config.yaml").write_text(json.dumps(_configuration(directory, webhook, health, visibility)))
    manager = ["setpriv", "--pdeathsig=KILL", str(components.tool(MODULE)), f"--config={directory / 'config.yaml'}"]
    manager += [f"--kubeconfig={kubeconfig}"]
    manager += [f"--feature-gates={','.join(gates)}"] if gates else []
    with (directory / "kueue.log").open("wb") as log:
        process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-e", "-c", START, "sh", *manager],
            env={"POD_NAMESPACE": "kueue-system", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        _until_ready(process, f"http://127.0.0.1:{health}/readyz", directory / "kueue.log")
        hooks = json.dumps(_webhooks(source, webhook, directory / "tls.crt"))
        subprocess.run([*apply, "-"], input=hooks, text=True, check=True, capture_output=True)
        served = json.dumps(_visibility(source, visibility))
        subprocess.run([*apply, "-"], input=served, text=True, check=True, capture_output=True)
        available = ["wait", "--for=condition=Available", "apiservice", "--all", "--timeout=60s"]
        subprocess.run([*kubectl, *available], check=True, capture_output=True)
        yield
    finally:
        process.kill()
        process.wait()


def _configuration(directory: Path, webhook: int, health: int, visibility: int) -> dict[str, Any]:
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": "kueue-system",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": webhook, "host": "127.0.0.1", "certDir": str(directory)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "visibilityServer": {"bindAddress": "127.0.0.1", "bindPort": visibility},
        "integrations": {"frameworks": ["ray.io/raycluster"]},
    }


def _webhooks(source: Path, port: int, authority: Path) -> dict[str, Any]:
    """Return the module's own webhooks, at the address of the process."""
    items = list(yaml.safe_load_all((source / "config/components/webhook/manifests.yaml").read_text()))
    for each in items:
        each["metadata"]["name"] = f"kueue-{each['metadata']['name']}"
        each["webhooks"] = [
            hook | {"clientConfig": {"url": f"https://127.0.0.1:{port}{hook['clientConfig']['service']['path']}"}}
            for hook in each["webhooks"]
            if SERVED.intersection(hook["rules"][0]["resources"])
        ]
        for hook in each["webhooks"]:
            hook["clientConfig"]["caBundle"] = base64.b64encode(authority.read_bytes()).decode()
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _visibility(source: Path, port: int) -> dict[str, Any]:
    """Return the module's own APIServices, which lead to the process by way of a name: no Service has a pod here."""
    folder = source / "config" / "components" / "visibility"
    items = [yaml.safe_load((folder / f"apiservice_{version}.yaml").read_text()) for version in ("v1beta1", "v1beta2")]
    for each in items:
        each["spec"]["service"]["port"] = port
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}}
    service = yaml.safe_load((folder / "service.yaml").read_text())
    service["spec"] = {"type": "ExternalName", "externalName": "localhost"}
    return {"apiVersion": "v1", "kind": "List", "items": [namespace, service, *items]}


def _until_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except (urllib.error.URLError, OSError):
            late = time.monotonic() > deadline or process.poll() is not None
            assert not late, f"Kueue does not start:\n{log.read_text(errors='replace')[-6000:]}"
            time.sleep(0.2)
