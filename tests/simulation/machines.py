"""Simulate scheduler, kubelet and container runtime: pods run, restart and end, and their status reports it."""

import asyncio
import base64
import contextlib
import random
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tests.simulation.api import Api, ApiError
from tests.simulation.nodes import NODES
from workergroups_api.manifest import POD, SECRET, Manifest

# What a pod can request that these machines do not have.
NO_SUCH_NODE = "simulation/nowhere"
HOSTNAME = "kubernetes.io/hostname"
BROKEN_IMAGE = "example.test/broken"
UNFIT_IMAGE = "example.test/unfit"
UNFIT = "Ray 2.9.3 is too old, 2.52 or later is needed"
# What the init container finds in any other image.
FOUND_VERSIONS = "ray 2.60.0 python 3.11.7"


@dataclass
class Container:
    """The current life of a pod's containers."""

    pod: Manifest
    token: str | None
    number: int
    id: str


class Machines:
    """Simulates pods. Calls `started` and `stopped` for each life of their containers."""

    def __init__(
        self,
        api: Api,
        namespace: str,
        choices: random.Random,
        started: Callable[[Container], None],
        stopped: Callable[[Container], None],
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._random = choices
        self._started = started
        self._stopped = stopped
        self._begun: set[str] = set()
        self._ending: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.pods: dict[str, Manifest] = {}
        # The running containers by the pod's UID.
        self.running: dict[str, Container] = {}
        # Seconds until a pod that is deleted is gone.
        self.termination_seconds = 0.15
        # On how many nodes new pods find room; None for as many as there are pods.
        self.free_nodes: int | None = None

    async def follow(self) -> None:
        """Follow the pods. Never returns."""
        async for type_, pod in self._api.watch(POD, self._namespace):
            uid = pod["metadata"]["uid"]
            if type_ == "DELETED":
                self.pods.pop(uid, None)
                self._stop(uid)
                continue
            self.pods[uid] = pod
            if "deletionTimestamp" in pod["metadata"]:
                if uid not in self._ending:
                    self._ending.add(uid)
                    self._spawn(self._end(pod))
            elif uid not in self._begun:
                self._begun.add(uid)
                self._spawn(self._begin(uid))

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        """New pods find no node meanwhile, so a test can look at what a lost pod causes before the next is there."""
        self.free_nodes = 0
        yield
        self.free_nodes = None

    def restart(self, uid: str, seconds: float = 0.05) -> None:
        """Restart the pod's containers."""
        if uid in self.running:
            self._stop(uid)
            self._spawn(self._restart(uid, seconds))

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End the simulation of all pods."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _stop(self, uid: str) -> None:
        container = self.running.pop(uid, None)
        if container is not None:
            self._stopped(container)

    async def _end(self, pod: Manifest) -> None:
        """End the containers some time after the pod's deletion, then remove the object, as kubelet does."""
        await asyncio.sleep(self.termination_seconds * self._random.uniform(0.3, 1.5))
        self._stop(pod["metadata"]["uid"])
        await self._api.delete(POD, self._namespace, pod["metadata"]["name"], grace=0)

    async def _begin(self, uid: str) -> None:
        pod = self.pods[uid]
        if NO_SUCH_NODE in (pod["spec"].get("nodeSelector") or {}):
            await self._say(uid, _unschedulable("3 node(s) didn't match Pod's node affinity/selector"))
            return
        if self.free_nodes == 0:
            await self._say(uid, _unschedulable("3 Insufficient cpu"))
        while self.free_nodes == 0 and uid not in self._ending:  # noqa: ASYNC110 (a test changes it)
            await asyncio.sleep(0.05)
        if self.free_nodes is not None:
            self.free_nodes -= 1
        while self.pods.get(uid, pod)["spec"].get("schedulingGates"):  # noqa: ASYNC110 (somebody removes them)
            await asyncio.sleep(0.05)
        if not pod["spec"].get("nodeName"):
            await self._bind(self.pods.get(uid, pod))
        await asyncio.sleep(self._random.uniform(0.01, 0.08))
        is_checked = bool(pod["spec"].get("initContainers"))
        if is_checked and any(each["image"].startswith(UNFIT_IMAGE) for each in pod["spec"]["containers"]):
            await self._say(uid, _unfit(pod))
            return
        await self._run(uid, 0)

    async def _bind(self, pod: Manifest) -> None:
        name = pod["metadata"]["name"]
        selected = (pod["spec"].get("nodeSelector") or {}).get(HOSTNAME)
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "uid": pod["metadata"]["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": selected or self._random.choice(list(NODES))},
        }
        with contextlib.suppress(ApiError):
            await self._api.request("POST", f"/api/v1/namespaces/{self._namespace}/pods/{name}/binding", binding)

    async def _restart(self, uid: str, seconds: float) -> None:
        number = 1 + max(
            (s.get("restartCount", 0) for s in self.pods[uid].get("status", {}).get("containerStatuses", ())),
            default=0,
        )
        state = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}
        await self._say(uid, _status(self.pods[uid], "Running", state, number, "", ready=False))
        await asyncio.sleep(seconds)
        await self._run(uid, number)

    async def _run(self, uid: str, number: int) -> None:
        """Start the containers as soon as nothing prevents it."""
        said = None
        while uid in self.pods and uid not in self._ending:
            token, trouble = await self._token(self.pods[uid])
            if trouble is None:
                container = Container(self.pods[uid], token, number, f"containerd://{secrets.token_hex(8)}")
                if uid not in self.pods or uid in self._ending:
                    return
                running = {"running": {"startedAt": _now()}}
                self.running[uid] = container
                self._started(container)
                await self._say(uid, _status(self.pods[uid], "Running", running, number, container.id, ready=True))
                return
            if trouble != said:
                said = trouble
                await self._say(uid, _status(self.pods[uid], "Pending", {"waiting": trouble}, number, "", ready=False))
            await asyncio.sleep(0.1)

    async def _token(self, pod: Manifest) -> tuple[str | None, dict[str, str] | None]:
        """Return Ray's token, which the containers get at their start, and why they cannot start."""
        for container in pod["spec"]["containers"]:
            if container["image"].startswith(BROKEN_IMAGE):
                return None, {"reason": "ErrImagePull", "message": f"failed to pull {container['image']}: not found"}
            for variable in container.get("env", ()):
                reference = (variable.get("valueFrom") or {}).get("secretKeyRef")
                if variable["name"] == "RAY_AUTH_TOKEN" and reference:
                    secret = await self._api.get(SECRET, self._namespace, reference["name"])
                    if secret is None or reference["key"] not in secret.get("data", {}):
                        message = f'secret "{reference["name"]}" not found'
                        return None, {"reason": "CreateContainerConfigError", "message": message}
                    return base64.b64decode(secret["data"][reference["key"]]).decode(), None
        return None, None

    async def _say(self, uid: str, status: Manifest) -> None:
        pod = self.pods.get(uid)
        if pod is None:
            return
        # With the UID, so that another pod of this name does not get it.
        patch = {"metadata": {"uid": uid}, "status": status}
        with contextlib.suppress(ApiError):
            await self._api.merge(POD, self._namespace, pod["metadata"]["name"], patch, "status")


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _condition(type_: str, status: str) -> dict[str, str]:
    return {"type": type_, "status": status, "lastTransitionTime": _now()}


def _unschedulable(why: str) -> Manifest:
    message = f"0/3 nodes are available: {why}."
    condition = _condition("PodScheduled", "False") | {"reason": "Unschedulable", "message": message}
    return {"phase": "Pending", "conditions": [condition]}


def _unfit(pod: Manifest) -> Manifest:
    """The first init container has copied the library; the second found that Ray is too old, and is retried."""
    status = _status(pod, "Pending", {"waiting": {"reason": "PodInitializing"}}, 0, "", ready=False)
    for container in status["initContainerStatuses"][1:]:
        ended = {"terminated": {"exitCode": 1, "reason": "Error", "message": UNFIT}}
        waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
        container |= {"ready": False, "restartCount": 1, "state": waiting, "lastState": ended}
    return status


def _status(pod: Manifest, phase: str, state: Any, number: int, container_id: str, *, ready: bool) -> Manifest:
    yes = "True" if ready else "False"
    return {
        "phase": phase,
        "podIP": "10.1.0.1",
        "startTime": _now(),
        "conditions": [
            _condition("PodScheduled", "True"),
            _condition("Initialized", "True"),
            _condition("ContainersReady", yes),
            _condition("Ready", yes),
        ],
        "initContainerStatuses": [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "state": {"terminated": {"exitCode": 0, "reason": "Completed", "message": FOUND_VERSIONS}},
            }
            for container in pod["spec"].get("initContainers") or ()
        ],
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "containerID": f"{container_id}{index}" if container_id else "",
                "ready": ready,
                "started": ready,
                "restartCount": number,
                "state": state,
            }
            for index, container in enumerate(pod["spec"]["containers"])
        ],
    }
