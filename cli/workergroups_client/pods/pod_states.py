"""The pods of a Ray cluster, and what those that do not run wait for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from workergroups_api.manifest import Manifest
from workergroups_api.vocabulary import Component
from workergroups_common.scheduler_message import shortened
from workergroups_common.text import plain

from ..api_server.cluster import Cluster
from ..objects.names import all_pods
from ..times import moment

_LONGEST = 300


@dataclass(frozen=True)
class PodState:
    """A pod, where it is, and why it does not run."""

    name: str
    state: str
    """Its phase, or Terminating."""
    node: str
    """The Kubernetes node; empty while the pod has none."""
    created: datetime
    why: str
    """In the words of Kubernetes; empty if it runs, was not restarted, and is not being evicted."""


def described_pods(cluster: Cluster, ray_cluster_name: str) -> list[Manifest]:
    """Return the pods of a Ray cluster: the head, the nodes of its pools, and the agent's pod if it does not run."""

    def of(component: Component) -> list[Manifest]:
        return all_pods(cluster, ray_cluster_name, component)

    agents = [pod for pod in of(Component.AGENT) if pod.get("status", {}).get("phase") != "Running"]
    return [*of(Component.HEAD), *of(Component.WORKER), *agents]


def pod_state(pod: Manifest) -> PodState:
    """Return the state of a pod."""
    metadata, status = pod["metadata"], pod.get("status", {})
    phase = str(status.get("phase", "Unknown"))
    return PodState(
        name=str(metadata["name"]),
        state="Terminating" if metadata.get("deletionTimestamp") else phase,
        node=str(pod["spec"].get("nodeName", "")),
        created=moment(metadata["creationTimestamp"]),
        why=plain(_evicted(status) or (_of_containers(status) if phase == "Running" else _why(pod)), _LONGEST),
    )


def _evicted(status: Manifest) -> str:
    """Return why a pod is being evicted; empty if it is not."""
    conditions = status.get("conditions", ())
    found = (each for each in conditions if each["type"] == "DisruptionTarget" and each["status"] == "True")
    return next(map(_told, found), "")


def _why(pod: Manifest) -> str:
    """Return why a pod does not run: the scheduler's reason, else a container's, else the pod's."""
    status = pod.get("status", {})
    for condition in status.get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return shortened(str(condition.get("message") or condition.get("reason", "")))
    for container in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        if waiting := container.get("state", {}).get("waiting"):
            return _told(waiting)
    is_new = status.get("phase") == "Pending" and not pod["spec"].get("nodeName")
    return _told(status) or ("no scheduler has looked at it yet" if is_new else "")


def _of_containers(status: Manifest) -> str:
    """Return what is wrong with the containers of a pod that runs."""
    for container in status.get("containerStatuses", ()):
        if waiting := container.get("state", {}).get("waiting"):
            return _told(waiting)
        if count := container.get("restartCount"):
            last = container.get("lastState", {}).get("terminated") or {}
            ready = "" if container.get("ready") else "not ready; "
            ended = f", the last time after {last.get('reason')}, exit code {last.get('exitCode')}" if last else ""
            return f"{ready}{container['name']} was restarted {count} times{ended}"
    return ""


def _told(reason: Manifest) -> str:
    return ": ".join(str(reason[key]) for key in ("reason", "message") if reason.get(key))
