"""End one thing at random: a rank, a pod, a node's pods, the agent, the operator, the head, its GCS, or the driver."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping

from tests.truth import operators
from tests.truth.faults import evict
from tools.console import ToolError
from workergroups_api.names import CLUSTER_LABEL, COMPONENT_LABEL
from workergroups_api.vocabulary import Component, Container

from .judge import AGENT, DRAIN, DRIVER, EVICTION, GCS, HEAD, OPERATOR, POD, RANK, Kill, Kind
from .scene import NAME, Scene

# Prints the processes whose command line has a word; Ray's processes change theirs, so the shell reads what is shown.
_PROCESSES = (
    "for p in /proc/[0-9]*; do "
    'case "$(tr "\\0" " " < $p/cmdline 2>/dev/null)" in {}) echo ${{p#/proc/}};; esac; done; true'
)
_RANKS, _DRIVERS = _PROCESSES.format("ray::Trainer*"), _PROCESSES.format("python*driver.py*")
_GCS = _PROCESSES.format("*/gcs_server\\ *")
_NOW = ("--grace-period=0", "--force")

Act = Callable[[Scene, random.Random], str | None]


def kill(scene: Scene, kind: Kind, choice: random.Random) -> Kill | None:
    """Kill something of that kind; return None if there is nothing now, or if it ends by itself just then."""
    lives, began = scene.ready_lives(), time.monotonic()
    try:
        target = _ACTS[kind](scene, choice)
    except ToolError:
        if kind is OPERATOR:
            raise
        return None
    return None if target is None else Kill(kind, target, began, time.monotonic(), lives)


def _kill_process(script: str, component: Component, container: Container) -> Act:
    def act(scene: Scene, choice: random.Random) -> str | None:
        pods = scene.pods(component)
        if not pods:
            return None
        pod = choice.choice(pods)
        processes = scene.shell(pod, container, script).split()
        if not processes:
            return None
        process = choice.choice(processes)
        scene.shell(pod, container, f"kill -9 {process}")
        return f"process {process} in {pod}"

    return act


def _delete_pod(component: Component) -> Act:
    def act(scene: Scene, choice: random.Random) -> str | None:
        pods = scene.pods(component)
        if not pods:
            return None
        pod = choice.choice(pods)
        how = choice.choice(((), _NOW))
        scene.kubectl("delete", "pod", pod, "--wait=false", *how)
        return f"{pod} at once" if how else pod

    return act


def _evict(scene: Scene, choice: random.Random) -> str | None:
    pods = scene.pods(Component.WORKER)
    if not pods:
        return None
    pod = choice.choice(pods)
    evict(scene.kubectl, scene.namespace, pod)
    return pod


def _drain(scene: Scene, choice: random.Random) -> str | None:
    """Drain a node of the workers on it, and let pods on it again."""
    nodes = sorted(set(scene.nodes(Component.WORKER)))
    if not nodes:
        return None
    node = choice.choice(nodes)
    workers = f"--pod-selector={CLUSTER_LABEL}={NAME},{COMPONENT_LABEL}={Component.WORKER}"
    try:
        scene.kubectl("drain", node, workers, "--delete-emptydir-data", "--timeout=60s")
    finally:
        scene.kubectl("uncordon", node)
    return node


def _kill_operator(_scene: Scene, _choice: random.Random) -> str | None:
    """Kill the operator that serves with its pod, since kubelet would wait longer each time to start it again."""
    # What is killed while no operator serves is another fault, which `make truth` has.
    operators.kill_serving()
    operators.kubectl()("rollout", "status", operators.DEPLOYMENT, "--timeout=120s")
    return "its pod at once"


_ACTS: Mapping[Kind, Act] = {
    RANK: _kill_process(_RANKS, Component.WORKER, Container.WORKER),
    POD: _delete_pod(Component.WORKER),
    EVICTION: _evict,
    DRAIN: _drain,
    HEAD: _delete_pod(Component.HEAD),
    GCS: _kill_process(_GCS, Component.HEAD, Container.HEAD),
    AGENT: _delete_pod(Component.AGENT),
    OPERATOR: _kill_operator,
    DRIVER: _kill_process(_DRIVERS, Component.HEAD, Container.HEAD),
}
