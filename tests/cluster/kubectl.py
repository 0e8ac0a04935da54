"""kubectl as a user has it, and waiting with a reason."""

import json
import os
import re
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Refused(Exception):
    """kubectl ended with an error; its text is the message."""


def kubectl(*arguments: str, stdin: str | None = None, timeout: float = 120) -> str:
    """Run kubectl and return what it prints."""
    done = subprocess.run(
        ["kubectl", *arguments], input=stdin, capture_output=True, text=True, timeout=timeout, check=False
    )
    if done.returncode:
        raise Refused(done.stderr.strip())
    return done.stdout


class Namespace:
    """A namespace of one test."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, *arguments: str, **more: Any) -> str:
        """kubectl in this namespace."""
        return kubectl("-n", self.name, *arguments, **more)

    def apply(self, *manifests: dict[str, Any]) -> str:
        """kubectl apply."""
        return self.run("apply", "-f", "-", stdin="\n---\n".join(map(json.dumps, manifests)))

    def get(self, kind: str, name: str | None = None, selector: str | None = None) -> Any:
        """An object, or the list of those that a label selector matches (all without one)."""
        if name is not None:
            return json.loads(self.run("get", kind, name, "-o", "json"))
        selection = ["-l", selector] if selector else []
        return json.loads(self.run("get", kind, "-o", "json", *selection))["items"]

    def ready(self, kind: str, name: str) -> dict[str, Any]:
        """The condition Ready; empty while there is none."""
        return self.condition(kind, name, "Ready")

    def condition(self, kind: str, name: str, type_: str) -> dict[str, Any]:
        """A condition; empty while there is none."""
        conditions = self.get(kind, name).get("status", {}).get("conditions", [])
        return next((condition for condition in conditions if condition["type"] == type_), {})

    def until_ready(self, kind: str, name: str, seconds: float = 180) -> dict[str, Any]:
        """Wait for Ready."""
        return self.until(lambda: self.ready(kind, name), lambda ready: ready.get("status") == "True", seconds)

    def until(self, look: Callable[[], Any], is_so: Callable[[Any], bool], seconds: float) -> Any:
        """Look until it is so; what was seen last is the reason if it never is."""
        deadline = time.monotonic() + seconds
        while True:
            seen = look()
            if is_so(seen):
                return seen
            assert time.monotonic() < deadline, f"not within {seconds} s; last seen: {seen}\n{self.overview()}"
            time.sleep(0.2)

    def until_said(self, pool: str, words: str, seconds: float = 60) -> dict[str, Any]:
        """Wait for words in the message of a pool's Ready."""
        return self.until(
            lambda: self.ready("resourcepool", pool), lambda seen: words in seen.get("message", ""), seconds
        )

    def overview(self) -> str:
        """What a person would look at first."""
        return self.run("get", "resourcepools,workergroups,rayclusters,pods", "-o", "wide")

    def head(self, cluster: str) -> str:
        """Name of the Ray head's pod."""
        (pod,) = self.get("pods", selector=f"workergroups.dev/cluster={cluster},workergroups.dev/component=head")
        return str(pod["metadata"]["name"])

    def available(self, deployment: str) -> bool:
        """Whether a Deployment has its pod ready."""
        return bool(self.get("deployment", deployment)["status"].get("availableReplicas"))

    def node_with(self, label: str) -> str:
        """Name of the one Kubernetes node with a label."""
        (node,) = json.loads(kubectl("get", "nodes", "-l", label, "-o", "json"))["items"]
        return str(node["metadata"]["name"])


# What an operator for some namespaces serves, each for one test module.
_SERVED = iter(os.environ.get("NAMESPACES", "").split())


@contextmanager
def new_namespace(prefix: str) -> Iterator[Namespace]:
    """A namespace that exists within the context, and leaves nothing behind."""
    name = next(_SERVED, "")
    if not name:
        name = f"{prefix}-{uuid.uuid4().hex[:8]}"
        kubectl("create", "namespace", name)
    try:
        yield Namespace(name)
    finally:
        kubectl("delete", "namespace", name, "--wait=true", "--timeout=120s", timeout=130)


# What operator and agent write, and nobody else in a test's cluster.
WRITTEN = (
    "rayclusters",
    "resourcepools",
    "workergroups",
    "secrets",
    "configmaps",
    "roles",
    "rolebindings",
    "networkpolicies",
    "serviceaccounts",
)
_REQUESTS = re.compile(r"apiserver_request_total{([^}]*)} (\S+)")


def writes() -> dict[str, float]:
    """How many writes of these kinds the API server has served, those that changed nothing included."""
    counts = dict.fromkeys(WRITTEN, 0.0)
    for labels_, count in _REQUESTS.findall(kubectl("get", "--raw", "/metrics")):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', labels_))
        # KubeRay writes the status of its clusters, and nothing else of them; kubelets renew pods' tokens.
        if (labels["resource"], labels["subresource"]) in (("rayclusters", "status"), ("serviceaccounts", "token")):
            continue
        if labels["resource"] in counts and labels["verb"] in ("POST", "PUT", "PATCH", "APPLY", "DELETE"):
            counts[labels["resource"]] += float(count)
    return counts


def writes_at_rest() -> dict[str, float]:
    """Return `writes` once there were none for three seconds, as an earlier test's driver ends after that test."""
    deadline, before = time.monotonic() + 30, writes()
    while True:
        time.sleep(3)
        after = writes()
        if after == before:
            return after
        assert time.monotonic() < deadline, f"still written to: {before} became {after}"
        before = after


def pool(name: str = "actors", nodes: int = 1, processes: int = 2, **spec: Any) -> dict[str, Any]:
    """A ResourcePool on the NVIDIA node, unless the spec says otherwise."""
    defaults = {
        "nodes": nodes,
        "processesPerNode": processes,
        "accelerator": {"vendor": "nvidia", "product": "NVIDIA-A100-SXM4-80GB"},
    }
    return manifest("ResourcePool", name, defaults | spec)


def group(name: str = "trainer", pools: Any = None, **spec: Any) -> dict[str, Any]:
    """A WorkerGroup of accumulators on the pool of its own name, unless told otherwise."""
    refs = [ref if isinstance(ref, dict) else {"name": ref} for ref in pools or ()]
    defaults = {
        **({"pools": refs} if refs else {}),
        "worker": {"class": "accumulator.Accumulator"},
        "code": {"configMap": {"name": "accumulator"}},
    }
    return manifest("WorkerGroup", name, defaults | spec)


def manifest(kind: str, name: str, spec: Any) -> dict[str, Any]:
    """An object of ours."""
    return {"apiVersion": "workergroups.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def config_map(name: str, **files: str) -> dict[str, Any]:
    """A ConfigMap of Python files; `accumulator="..."` is the file accumulator.py."""
    data = {f"{stem}.py": text for stem, text in files.items()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
