"""One pool with one group in their own namespace, on which all faults are tried."""

from __future__ import annotations

import json
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

from tools.console import ToolError, run, say
from tools.demo.kubectl import Kubectl
from workergroups_api.names import API_VERSION, CLUSTER_LABEL, COMPONENT_LABEL
from workergroups_api.vocabulary import Component, Container

from .claim import claim, directory_of_heads
from .judge import TRUE
from .watch import GROUPS, POOLS, Seen, Watch

NAME = "truth"
READY_SECONDS = 180
GROUP_SECONDS = 90
# A group that recovers automatically does so soon after its pool.
RECOVERY_SECONDS = 45
_ATTEMPTS = 3
_HERE = Path(__file__).parent
_CONTAINERS = {
    Component.HEAD: Container.HEAD,
    Component.WORKER: Container.WORKER,
    Component.AGENT: Container.OBSERVER,
}


class StageError(ToolError):
    """The pool or its group does not become ready again; the message says what it waits for."""


@dataclass(frozen=True)
class Rank:
    """A rank that answered."""

    pid: int
    pod: str
    born: float


@dataclass(frozen=True)
class Answer:
    """What the ranks told a driver."""

    incarnation: int
    ranks: tuple[Rank, ...]


class Stage:
    """A pool of one node with two processes, and a group on it; the pool's GCS may keep its state on a claim."""

    def __init__(self, *, has_claim: bool = False) -> None:
        self._has_claim = has_claim
        self.namespace = f"truth-{uuid.uuid4().hex[:8]}"
        self.kubectl = Kubectl({}, self.namespace)
        self.watch = Watch(self.namespace)
        self.changes = 0
        """How often the group was recreated, by a change of its environment."""
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        say(f"a pool and a group in namespace {self.namespace}")
        with ExitStack() as undo:
            undo.callback(self._remove)
            self.kubectl("create", "namespace", self.namespace)
            undo.enter_context(self.watch)
            code = {"ranks.py": (_HERE / "ranks.py").read_text()}
            self._apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": code})
            self._apply(_object("ResourcePool", {"processesPerNode": 2, **self._claimed(undo)}))
            self._apply(_object("WorkerGroup", _GROUP))
            self._until_ready(POOLS, READY_SECONDS)
            self._until_ready(GROUPS, GROUP_SECONDS)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._undo.close()

    def _claimed(self, undo: ExitStack) -> dict[str, Any]:
        """Create a claim for the pool's head if it must have one; return the field that names it."""
        if not self._has_claim:
            return {}
        directory = undo.enter_context(directory_of_heads())
        undo.callback(self.kubectl, "delete", "persistentvolume", self.namespace, "--wait=false")
        for manifest in claim(self.namespace, self.namespace, directory):
            self._apply(manifest)
        return {"head": {"gcsStorage": {"claimName": self.namespace}, "podTemplate": {"spec": _ON_DEVICE_NODES}}}

    def _remove(self) -> None:
        say(f"removing namespace {self.namespace}")
        run(["kubectl", "delete", "namespace", self.namespace, "--ignore-not-found", "--wait=true", "--timeout=120s"])

    def latest(self, plural: str) -> Seen:
        """Return the last observation of the pool or the group."""
        return self.watch.latest(plural, NAME)

    def history(self, plural: str, since: float) -> list[Seen]:
        """Return the observations of the pool or the group since a time."""
        return self.watch.history(plural, NAME, since)

    def restore(self, *, recovers: bool) -> Answer:
        """Wait until pool and group are ready and stay ready while a driver asks the ranks.

        If the group does not recover, a change of its environment recreates it.
        """
        patience = RECOVERY_SECONDS if recovers else 2
        for _ in range(_ATTEMPTS):
            self._until_ready(POOLS, READY_SECONDS)
            if not self.watch.wait(lambda: self.latest(GROUPS).status == TRUE, patience):
                self._recreate()
            try:
                answer = self.ask()
            except ToolError as error:
                say(f"  the ranks do not answer: {str(error)[-200:]}")
                self._recreate()
                continue
            if self.latest(POOLS).status == self.latest(GROUPS).status == TRUE:
                return answer
        raise StageError(f"pool and group do not stay ready: {self._latest_reason(GROUPS)}")

    def ask(self) -> Answer:
        """Run a driver on the head, and return what the ranks answer."""
        command = [
            "exec",
            "-i",
            self.pod(Component.HEAD),
            f"--container={Container.HEAD}",
            "--",
            "timeout",
            "60",
            "python",
            "-",
        ]
        output = self.kubectl(*command, stdin=(_HERE / "ask.py").read_text())
        (line,) = [line for line in output.splitlines() if line.startswith("RESULT ")]
        said = json.loads(line.removeprefix("RESULT "))
        return Answer(said["incarnation"], tuple(Rank(**rank) for rank in said["ranks"]))

    def pod(self, component: Component) -> str:
        """Return the name of the one pod of a component that is not being deleted."""
        living = self._living(component)
        if len(living) != 1:
            raise StageError(f"{len(living)} {component} pods exist, not 1")
        return living[0]

    def another_pod(self, component: Component, old: str) -> str:
        """Wait for the pod that replaces the old one, and return its name."""
        if not self.watch.wait(lambda: any(pod != old for pod in self._living(component)), READY_SECONDS):
            raise StageError(f"nothing replaced pod {old}")
        return next(pod for pod in self._living(component) if pod != old)

    def _living(self, component: Component) -> list[str]:
        selector = f"{CLUSTER_LABEL}={NAME},{COMPONENT_LABEL}={component}"
        pods = self.kubectl.json("pods", f"--selector={selector}")["items"]
        return [str(pod["metadata"]["name"]) for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def pod_manifest(self, component: Component) -> dict[str, Any]:
        """Return the manifest of the same pod."""
        return dict(self.kubectl.json("pod", self.pod(component)))

    def shell(self, component: Component, script: str) -> str:
        """Run a script in Ray's container of the head, of the worker or of the agent."""
        container = f"--container={_CONTAINERS[component]}"
        return self.kubectl("exec", self.pod(component), container, "--", "sh", "-c", script)

    def patch(self, kind: str, spec: dict[str, Any]) -> None:
        """Change a field of the pool's or the group's spec."""
        self.kubectl("patch", kind, NAME, "--type=merge", f"--patch={json.dumps({'spec': spec})}")

    def _recreate(self) -> None:
        for attempt in range(_ATTEMPTS):
            self.changes += 1
            before = self.latest(GROUPS).incarnation
            self.patch("workergroup", {"env": [{"name": "CHANGE", "value": str(self.changes)}]})
            if self.watch.wait(partial(self._is_ready_beyond, before), GROUP_SECONDS):
                return
            say(f"  no new incarnation within {GROUP_SECONDS} s, try {attempt + 1}: {self._latest_reason(GROUPS)}")
        raise StageError(f"no new incarnation: {self._latest_reason(GROUPS)}")

    def _is_ready_beyond(self, incarnation: int) -> bool:
        seen = self.latest(GROUPS)
        return seen.status == TRUE and seen.incarnation > incarnation

    def _until_ready(self, plural: str, seconds: float) -> None:
        if not self.watch.wait(lambda: self.latest(plural).status == TRUE, seconds):
            raise StageError(f"{plural}: not ready within {seconds:.0f} s: {self._latest_reason(plural)}")

    def _latest_reason(self, plural: str) -> str:
        seen = self.latest(plural)
        return f"{seen.status} {seen.reason}: {seen.message}"

    def _apply(self, manifest: dict[str, Any]) -> None:
        self.kubectl("apply", "--filename=-", stdin=json.dumps(manifest))


# Heads run on one of the local cluster's two nodes for devices, where nothing else runs that could be lost with it.
_ON_DEVICE_NODES = {
    "tolerations": [{"key": f"{vendor}.com/gpu", "operator": "Exists"} for vendor in ("nvidia", "amd")],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["plain"]}]}
                ]
            }
        }
    },
}
# Its ranks are killed often, so it has a large budget of restarts.
_GROUP = {
    "worker": {"class": "ranks.Rank"},
    "code": {"configMap": {"name": NAME}},
    "failurePolicy": {"maxRestarts": 100, "backoffSeconds": 0},
}


def _object(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": NAME}, "spec": spec}
