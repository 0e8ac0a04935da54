"""Start etcd, the API server, the necessary controllers and KubeRay, on free ports of the loopback, within seconds.

The binaries are those of the local cluster. A running local cluster is not affected.
"""

import itertools
import json
import os
import random
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO
from uuid import uuid4

from tests.simulation.nodes import NODES
from tools.console import REPOSITORY
from tools.local_cluster import cluster, components
from tools.local_cluster.api_server import ApiServer, command_line
from workergroups_api.names import GROUP, VERSION

START_SECONDS = 90
# Above the ports of the local cluster and of Ray's workers, below those that the kernel picks.
_FIRST_PORT, _PORTS, _WORKERS = 24_000, 1_000, 8
# These create the pods of Deployments, remove objects whose owners are gone, and prepare namespaces.
CONTROLLERS = (
    "deployment-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "replicaset-controller",
    "resourcequota-controller",
    "serviceaccount-controller",
)
USERS = {
    # Groups by user name. All users are administrators except the operator, which has the rights that the chart grants,
    # and "narrow", for an operator that has them in one namespace.
    "admin": "system:masters",
    "controllers": "system:masters",
    "kuberay": "system:masters",
    "operator": "",
    "narrow": "",
}


class StartError(Exception):
    """The control plane does not start."""


@dataclass(frozen=True)
class Access:
    """How to reach the API server, also for processes that did not start it."""

    url: str
    certificate: str
    tokens: Mapping[str, str]
    # Where its etcd is.
    etcd: str = ""
    # Process ids by program, for tests that stop a program for a while.
    processes: Mapping[str, int] = field(default_factory=dict)

    def kubeconfig(self, user: str) -> dict[str, object]:
        """Return a kubeconfig for one of the users."""
        cluster = {"server": self.url, "certificate-authority": self.certificate}
        return kubeconfig(cluster, self.tokens[user])


def kubeconfig(cluster: Mapping[str, str], token: str) -> dict[str, object]:
    """Return a kubeconfig of one cluster and one user."""
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
    """Return the local cluster's binaries; build them if the cache lacks them."""
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
        self._port = free_ports(1)[0]
        self.access = Access(
            url=f"https://127.0.0.1:{self._port}",
            certificate=str(directory / "server.crt"),
            tokens={user: uuid4().hex for user in USERS},
        )

    def start(self) -> Access:
        self._write_credentials()
        self._start_api_server()
        self._wait_for("kube-apiserver", lambda: self._get("/readyz") is not None)
        # Before the garbage collector starts, since it learns late of kinds that are installed later.
        ours = self._checkout / "charts" / "workergroups" / "files" / "crds"
        self._kubectl("apply", "--server-side", f"--filename={self._programs / 'crds'}", f"--filename={ours}")
        self._grant_operator()
        self._create_nodes()
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
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(self._key)]
        command = ["openssl", "req", "-x509", *key, *certificate, "-subj", "/CN=simulation", "-days", "30"]
        subprocess.run(command, check=True, capture_output=True)
        rows = [f'{self.access.tokens[user]},{user},{user},"{groups}"' for user, groups in USERS.items()]
        (self._directory / "tokens.csv").write_text("\n".join(rows) + "\n")
        for user in USERS:
            self._kubeconfig(user).write_text(json.dumps(self.access.kubeconfig(user)))

    @property
    def _key(self) -> Path:
        return self._directory / "server.key"

    def _kubeconfig(self, user: str) -> Path:
        return self._directory / f"{user}.kubeconfig"

    def _start_api_server(self) -> None:
        client, peer = (f"http://127.0.0.1:{port}" for port in free_ports(2))
        self.access = replace(self.access, etcd=client)
        credentials = (Path(self.access.certificate), self._key)
        server = ApiServer(
            address="127.0.0.1",
            port=self._port,
            etcd_client=client,
            etcd_peer=peer,
            etcd_data=self._directory / "etcd",
            service_addresses="10.96.0.0/16",
            serving=credentials,
            signing=credentials,
            issuer="https://simulation",
        )
        flags = {
            "endpoint-reconciler-type": "none",
            "authorization-mode": "RBAC",
            "token-auth-file": self._directory / "tokens.csv",
            "max-requests-inflight": 4000,
            "max-mutating-requests-inflight": 2000,
            # How it says to other servers of APIs, such as Kueue's, who asks.
            "proxy-client-cert-file": self.access.certificate,
            "proxy-client-key-file": self._key,
            "requestheader-client-ca-file": self.access.certificate,
            "requestheader-username-headers": "X-Remote-User",
            "requestheader-group-headers": "X-Remote-Group",
            "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        }
        self._run(server.etcd(self._programs))
        # Its heap is small and its load is high: collecting garbage less often saves a seventh of its CPU time.
        self._run(server.kube_apiserver(self._programs, flags), GOGC="400")

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
        self._run(command_line(self._programs / "kube-controller-manager", flags))

    def _start_kuberay(self) -> None:
        flags = {
            "metrics-addr": "127.0.0.1:0",
            "health-probe-bind-address": f"127.0.0.1:{free_ports(1)[0]}",
            "enable-leader-election": "false",
            "use-kubernetes-proxy": "true",
            "reconcile-concurrency": 8,
            "qps": 1000,
            "burst": 2000,
        }
        # A pod that is gone before KubeRay has seen it stops its group for 30 s, and until it looks again for any
        # other reason: by itself after five minutes, here sooner.
        environment = {"KUBECONFIG": str(self._kubeconfig("kuberay")), "RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV": "10"}
        self._run(command_line(self._programs / "ray-operator", flags), **environment)

    def _create_nodes(self) -> None:
        """Create the nodes to which the simulation binds pods, for those who read their labels."""
        nodes = [
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
            for name, labels in NODES.items()
        ]
        self._kubectl("apply", "--filename=-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}))

    def _grant_operator(self) -> None:
        """Grant the chart's rights to the user under whose name the operator runs here."""
        chart = str(self._checkout / "charts" / "workergroups")
        options = ["--kube-version=1.35.0", "--set=operator.image=simulated,worker.image=simulated"]
        command = [str(self._programs / "helm"), "template", "workergroups", chart, *options]
        rendered = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        kinds = ("ClusterRole\n", "ValidatingAdmissionPolicy")
        rendered = rendered.replace("system:serviceaccount:default:workergroups-operator", "operator")
        documents = [text for text in rendered.split("---\n") if any(f"\nkind: {kind}" in text for kind in kinds)]
        self._kubectl("apply", "--server-side", "--filename=-", stdin="---\n".join(documents))
        self._kubectl(
            "create", "clusterrolebinding", "simulated", "--clusterrole=workergroups-operator", "--user=operator"
        )

    def _run(self, argv: Sequence[str], **environment: str) -> None:
        program = Path(argv[0]).name
        log = (self._directory / f"{program}.log").open("wb")
        self._logs.append(log)
        # The kernel kills it when this process ends.
        self._running[program] = subprocess.Popen(
            ["setpriv", "--pdeathsig=KILL", *argv], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
        )

    def _wait_for(self, program: str, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not done():
            if time.monotonic() > deadline or self._running[program].poll() is not None:
                log = (self._directory / f"{program}.log").read_text(errors="replace")
                raise StartError(f"{program} does not start:\n{log[-4000:]}")
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
        # Their names are accepted, and their storage exists.
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


def _ports() -> Iterator[int]:
    """Yield ports in turn, of a range that belongs to this worker of pytest."""
    first = _FIRST_PORT + _PORTS * (int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % _WORKERS)
    begin = random.randrange(_PORTS)
    for number in itertools.count(begin):
        yield first + number % _PORTS


_next_ports = _ports()


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback that nobody uses now."""
    return list(itertools.islice(filter(_is_free, _next_ports), count))


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
