"""etcd, the API server, the controllers that are needed, and KubeRay: on loopback, on free ports, in seconds.

The binaries are those of the local cluster; a local cluster that runs is not touched.
"""

import json
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO
from uuid import uuid4

from workergroups_api.names import GROUP, VERSION

REPOSITORY = Path(__file__).resolve().parent.parent
START_SECONDS = 90
# What makes pods of Deployments, removes what has no owner any more, and makes namespaces usable.
CONTROLLERS = (
    "deployment-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "replicaset-controller",
    "resourcequota-controller",
    "serviceaccount-controller",
)
USERS = {
    # By user name: groups. All are administrators but the operator, whose rights are those that the chart gives.
    "admin": "system:masters",
    "controllers": "system:masters",
    "kuberay": "system:masters",
    "operator": "",
}


class StartError(Exception):
    """The control plane does not come up."""


@dataclass(frozen=True)
class Access:
    """How to reach the API server, for processes that did not start it too."""

    url: str
    certificate: str
    tokens: Mapping[str, str]
    # Process IDs by program, for tests that stop one for a while.
    processes: Mapping[str, int] = field(default_factory=dict)

    def kubeconfig(self, user: str) -> dict[str, object]:
        """A kubeconfig for one of the users."""
        cluster = {"server": self.url, "certificate-authority": self.certificate}
        return kubeconfig(cluster, self.tokens[user])


def kubeconfig(cluster: Mapping[str, str], token: str) -> dict[str, object]:
    """A kubeconfig of one cluster and one user."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": dict(cluster)}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }


@contextmanager
def control_plane(checkout: Path = REPOSITORY) -> Iterator[Access]:
    """Run within the context, with the kinds and the operator's rights of a checkout.

    The processes also end with this one, however it ends.
    """
    directory = Path(tempfile.mkdtemp(prefix="workergroups-simulation-"))
    plane = _ControlPlane(directory, binaries(), checkout)
    try:
        yield plane.start()
    finally:
        plane.stop()
        shutil.rmtree(directory, ignore_errors=True)


def binaries() -> Path:
    """The local cluster's, built if the cache has none."""
    sys.path.insert(0, str(REPOSITORY))
    try:
        from local_cluster import cluster, components
    finally:
        sys.path.remove(str(REPOSITORY))
    directory = components.binaries()
    if not directory.is_dir():
        with cluster.exclusive():
            components.ensure_built()
    return directory


class _ControlPlane:
    def __init__(self, directory: Path, programs: Path, checkout: Path) -> None:
        self._directory = directory
        self._checkout = checkout
        self._programs = programs
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._logs: list[IO[bytes]] = []
        self._port = _free_ports(1)[0]
        self.access = Access(
            url=f"https://127.0.0.1:{self._port}",
            certificate=str(directory / "server.crt"),
            tokens={user: uuid4().hex for user in USERS},
        )

    def start(self) -> Access:
        self._write_credentials()
        etcd = self._start_etcd()
        self._start_api_server(etcd)
        self._wait_for("kube-apiserver", lambda: self._get("/readyz") is not None)
        # Before the garbage collector starts: of kinds that come later, it learns late.
        self._kubectl(
            "apply", "--server-side", f"--filename={self._programs / 'crds'}", f"--filename={self._checkout / 'crds'}"
        )
        self._grant_operator()
        self._wait_for("kube-apiserver", self._has_our_kinds)
        self._start_controllers()
        self._start_kuberay()
        self._wait_for("kube-controller-manager", self._has_service_account)
        return replace(self.access, processes={name: process.pid for name, process in self._running.items()})

    def stop(self) -> None:
        for process in reversed(self._running.values()):
            process.kill()
        for process in self._running.values():
            process.wait()
        for log in self._logs:
            log.close()

    def _write_credentials(self) -> None:
        certificate = ["-out", self.access.certificate, "-addext", "subjectAltName=IP:127.0.0.1"]
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", self._key]
        command = ["openssl", "req", "-x509", *key, *certificate, "-subj", "/CN=simulation", "-days", "30"]
        subprocess.run(command, check=True, capture_output=True)
        rows = [f'{self.access.tokens[user]},{user},{user},"{groups}"' for user, groups in USERS.items()]
        (self._directory / "tokens.csv").write_text("\n".join(rows) + "\n")
        for user in USERS:
            self._kubeconfig(user).write_text(json.dumps(self.access.kubeconfig(user)))

    @property
    def _key(self) -> str:
        return str(self._directory / "server.key")

    def _kubeconfig(self, user: str) -> Path:
        return self._directory / f"{user}.kubeconfig"

    def _start_etcd(self) -> str:
        client, peer = (f"http://127.0.0.1:{port}" for port in _free_ports(2))
        flags = {
            "name": "simulation",
            "data-dir": self._directory / "etcd",
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"simulation={peer}",
            "unsafe-no-fsync": "true",
            "log-level": "warn",
        }
        self._run("etcd", flags)
        return client

    def _start_api_server(self, etcd: str) -> None:
        flags = {
            "etcd-servers": etcd,
            "bind-address": "127.0.0.1",
            "advertise-address": "127.0.0.1",
            "endpoint-reconciler-type": "none",
            "secure-port": self._port,
            "service-cluster-ip-range": "10.96.0.0/16",
            "authorization-mode": "RBAC",
            "allow-privileged": "true",
            "token-auth-file": self._directory / "tokens.csv",
            "tls-cert-file": self.access.certificate,
            "tls-private-key-file": self._key,
            "service-account-issuer": "https://simulation",
            "service-account-key-file": self.access.certificate,
            "service-account-signing-key-file": self._key,
            "max-requests-inflight": 4000,
            "max-mutating-requests-inflight": 2000,
        }
        # It has little to keep and much to do: collecting its garbage rarely spares a seventh of its CPU time.
        self._run("kube-apiserver", flags, GOGC="400")

    def _start_controllers(self) -> None:
        flags = {
            "kubeconfig": self._kubeconfig("controllers"),
            "controllers": ",".join(CONTROLLERS),
            "leader-elect": "false",
            "bind-address": "127.0.0.1",
            "secure-port": 0,
            "kube-api-qps": 1000,
            "kube-api-burst": 2000,
            "concurrent-namespace-syncs": 20,
            "service-account-private-key-file": self._key,
        }
        self._run("kube-controller-manager", flags)

    def _start_kuberay(self) -> None:
        flags = {
            "metrics-addr": "127.0.0.1:0",
            "health-probe-bind-address": f"127.0.0.1:{_free_ports(1)[0]}",
            "enable-leader-election": "false",
            "use-kubernetes-proxy": "true",
            "reconcile-concurrency": 8,
            "qps": 1000,
            "burst": 2000,
        }
        # A pod that is gone before KubeRay has seen it stops its group for 30 s, and until it looks again for any
        # other reason: by itself after five minutes, here sooner.
        environment = {"KUBECONFIG": str(self._kubeconfig("kuberay")), "RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV": "10"}
        self._run("ray-operator", flags, **environment)

    def _grant_operator(self) -> None:
        """What the chart grants, to the user under whose name the operator runs here."""
        chart = str(self._checkout / "charts" / "workergroups")
        options = ["--kube-version=1.35.0", "--set=operator.image=simulated,worker.image=simulated"]
        command = [str(self._programs / "helm"), "template", "workergroups", chart, *options]
        rendered = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        kinds = ("ClusterRole\n", "ValidatingAdmissionPolicy")
        documents = [text for text in rendered.split("---\n") if any(f"\nkind: {kind}" in text for kind in kinds)]
        self._kubectl("apply", "--server-side", "--filename=-", stdin="---\n".join(documents))
        self._kubectl(
            "create", "clusterrolebinding", "simulated", "--clusterrole=workergroups-operator", "--user=operator"
        )

    def _run(self, program: str, flags: Mapping[str, object], **environment: str) -> None:
        log = (self._directory / f"{program}.log").open("wb")
        self._logs.append(log)
        # The kernel ends it when this process ends.
        command = ["setpriv", "--pdeathsig=KILL", str(self._programs / program)]
        arguments = [f"--{name}={value}" for name, value in flags.items()]
        self._running[program] = subprocess.Popen(
            [*command, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
        )

    def _wait_for(self, program: str, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not done():
            if time.monotonic() > deadline or self._running[program].poll() is not None:
                log = (self._directory / f"{program}.log").read_text(errors="replace")
                raise StartError(f"{program} does not come up:\n{log[-4000:]}")
            time.sleep(0.1)

    def _get(self, path: str) -> bytes | None:
        context = ssl.create_default_context(cafile=self.access.certificate)
        request = urllib.request.Request(
            self.access.url + path, headers={"Authorization": f"Bearer {self.access.tokens['admin']}"}
        )
        try:
            with urllib.request.urlopen(request, context=context, timeout=5) as answer:
                content: bytes = answer.read()
                return content
        except (urllib.error.URLError, OSError):
            return None

    def _has_our_kinds(self) -> bool:
        wanted = {"ray.io/v1": ("rayclusters", "rayjobs"), f"{GROUP}/{VERSION}": ("resourcepools", "workergroups")}
        # Named, and past the moment in which their storage is made.
        return all(
            f'"name":"{kind}"'.encode() in (self._get(f"/apis/{group}") or b"")
            and self._get(f"/apis/{group}/{kind}") is not None
            for group, kinds in wanted.items()
            for kind in kinds
        )

    def _has_service_account(self) -> bool:
        return self._get("/api/v1/namespaces/default/serviceaccounts/default") is not None

    def _kubectl(self, *arguments: str, stdin: str | None = None) -> None:
        command = [str(self._programs / "kubectl"), f"--kubeconfig={self._kubeconfig('admin')}", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True)
        if done.returncode != 0:
            raise StartError(f"kubectl {' '.join(arguments)}: {done.stderr}")


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
