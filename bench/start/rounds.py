"""One start of examples/quickstart, and one of the same pods as a RayCluster with KubeRay's own probes."""

from __future__ import annotations

import json
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tools.console import ToolError
from tools.demo.kubectl import Kubectl

from .facts import Manifest, container_moments, facts, log_moments

ANSWERS, READY = "WorkerGroup Ready", "RayCluster ready"
_WATCHED = ("resourcepools.workergroups.dev", "workergroups.workergroups.dev", "rayclusters.ray.io")
_EXAMPLE = "examples/quickstart"
_NAME = "quickstart"
_SECONDS = 240
_WARM_UP_SECONDS = 2.0
# For this version, KubeRay's probes use HTTP; for an older Ray they run wget, which our image lacks.
_RAY_VERSION = "2.60.0"


@dataclass
class Round:
    """When each fact was first seen, in seconds after `kubectl apply` returned."""

    moments: dict[str, float] = field(default_factory=dict)
    cluster: dict[str, Any] = field(default_factory=dict)
    """The RayCluster's spec."""


def ours() -> Round:
    """Apply the quickstart, and wait until its ranks answer and its pods are ready."""
    with _namespace() as kubectl, _watch(kubectl) as seen:
        applied = time.time()
        kubectl("apply", f"--kustomize={_EXAMPLE}")
        _until(lambda: {ANSWERS, READY} <= seen.keys(), seen)
        moments = dict(seen)
        for pod in kubectl.json("pods")["items"]:
            moments |= dict(container_moments(pod)) | _from_logs(kubectl, pod)
        cluster = kubectl.json(f"raycluster/{_NAME}")["spec"]
    return Round({fact: at - applied for fact, at in moments.items()}, cluster)


def kuberay(spec: dict[str, Any]) -> Round:
    """Apply a RayCluster of the same pods, and wait until KubeRay reports that it is ready."""
    manifest = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": _NAME},
        "spec": with_kuberays_probes(spec),
    }
    with _namespace() as kubectl, _watch(kubectl) as seen:
        applied = time.time()
        kubectl("apply", "--filename=-", stdin=json.dumps(manifest))
        _until(lambda: READY in seen, seen)
    return Round({fact: at - applied for fact, at in seen.items()})


def with_kuberays_probes(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the spec of a RayCluster without our probes, so that KubeRay adds its own; it also creates the token.

    The spec lacks BASH_ENV as well, which changes how Ray starts.
    """
    bare: dict[str, Any] = json.loads(json.dumps(spec))
    for group in (bare["headGroupSpec"], *bare["workerGroupSpecs"]):
        for container in group["template"]["spec"]["containers"]:
            container.pop("readinessProbe", None)
            container.pop("livenessProbe", None)
            if "env" in container:
                container["env"] = [each for each in container["env"] if each["name"] != "BASH_ENV"]
    return bare | {"rayVersion": _RAY_VERSION, "authOptions": {"mode": "token"}}


@contextmanager
def _namespace() -> Iterator[Kubectl]:
    kubectl = Kubectl({}, f"start-{uuid.uuid4().hex[:8]}")
    name = kubectl.namespace
    kubectl("create", "namespace", name)
    try:
        yield kubectl
    finally:
        kubectl("delete", "namespace", name, "--wait=true", "--timeout=120s")


@contextmanager
def _watch(kubectl: Kubectl) -> Iterator[dict[str, float]]:
    """Yield the facts of a namespace's objects, with the time at which a watch first showed each, by our clock."""
    seen: dict[str, float] = {}
    command = ["kubectl", "--namespace", kubectl.namespace, "get", "--watch", "--output=json"]
    processes = [subprocess.Popen([*command, kind], stdout=subprocess.PIPE, text=True) for kind in _WATCHED]
    threads = [threading.Thread(target=_follow, args=(process, seen)) for process in processes]
    for thread in threads:
        thread.start()
    time.sleep(_WARM_UP_SECONDS)  # so that the start of these processes takes no CPU from what is measured
    try:
        yield seen
    finally:
        for process in processes:
            process.terminate()
        for thread in threads:
            thread.join()


def _follow(process: subprocess.Popen[str], seen: dict[str, float]) -> None:
    """Read objects; each ends with a brace in the first column."""
    lines: list[str] = []
    with process:
        for line in process.stdout or ():
            lines.append(line)
            if line.startswith("}"):
                now, manifest = time.time(), json.loads("".join(lines))
                lines.clear()
                for fact in facts(manifest):
                    seen.setdefault(fact, now)


def _until(is_so: Callable[[], bool], seen: dict[str, float]) -> None:
    deadline = time.monotonic() + _SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise ToolError(f"the start has not finished within {_SECONDS} s; so far: {', '.join(seen)}")
        time.sleep(0.1)


def _from_logs(kubectl: Kubectl, pod: Manifest) -> dict[str, float]:
    found: dict[str, float] = {}
    name = pod["metadata"]["name"]
    for container in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]):
        log = kubectl("logs", name, f"--container={container['name']}", "--timestamps")
        for fact, at in log_moments(container["name"], log):
            found.setdefault(fact, at)
    return found
