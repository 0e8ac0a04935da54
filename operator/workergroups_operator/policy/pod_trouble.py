"""Why a pod does not run, in the words of Kubernetes."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workergroups_api.conditions import Explanation
from workergroups_api.manifest import Manifest, name_of
from workergroups_api.vocabulary import Container, Reason
from workergroups_common.scheduler_message import shortened
from workergroups_common.text import plain

_INSUFFICIENT = re.compile(r"Insufficient ([^\s,.]+(?:\.[^\s,.]+)*(?:/[^\s,.]+)?)")
_CORDONED = re.compile(r"(\d+) node\(s\) were unschedulable")
_WAITING_IS_FINE = {"ContainerCreating", "PodInitializing"}
# Waiting fixes none of these, even if something else, such as the cluster's head, is still starting.
DECISIVE = {
    Reason.INSUFFICIENT_RESOURCES,
    Reason.NO_MATCHING_NODE,
    Reason.IMAGE_PULL_FAILED,
    Reason.IMAGE_UNFIT,
    Reason.SETUP_FAILED,
    Reason.RAY_VERSION_CONFLICT,
}
# A container's termination message may have 4096 bytes.
_MAX_MESSAGE = 500
_IMAGE_REASONS = {"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull"}
_INVALID_NAME = "InvalidImageName"
# What container runtimes say of a pull that fails, and what it means.
_PULL_CAUSES = (
    (
        re.compile(r"unauthorized|denied|forbidden|credentials|\b40[13]\b", re.IGNORECASE),
        "its registry refuses access, as some do to what does not exist",
    ),
    (re.compile(r"not found|manifest unknown|\b404\b", re.IGNORECASE), "its registry has no such image"),
    (
        re.compile(r"no such host|connection refused|unreachable|timeout|deadline exceeded|dial tcp", re.IGNORECASE),
        "its registry cannot be reached",
    ),
)


def first_trouble(pods: Iterable[Manifest]) -> Explanation | None:
    """Return the trouble of the first pod, by name, that has one."""
    for pod in sorted(pods, key=name_of):
        trouble = pod_trouble(pod)
        if trouble:
            return trouble
    return None


def pod_trouble(pod: Manifest) -> Explanation | None:
    """Explain why the pod does not run; None if nothing is known to be wrong."""
    status = pod.get("status", {})
    for condition in status.get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return _unschedulable(pod, str(condition.get("message", "")))
    for container in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        trouble = _container_trouble(pod["metadata"]["name"], container)
        if trouble:
            return trouble
    return None


def is_starting(container: Mapping[str, Any]) -> bool:
    """Return whether kubelet has not started the container yet, and nothing is known to be wrong with it."""
    return not container.get("state") or _waiting(container).get("reason") in _WAITING_IS_FINE


def cannot_pull(container: Mapping[str, Any]) -> bool:
    """Return whether kubelet cannot pull the container's image."""
    return _waiting(container).get("reason") in {*_IMAGE_REASONS, _INVALID_NAME}


def failed_pull(container: Mapping[str, Any]) -> str:
    """Return which image cannot be pulled, and why if that is known.

    Kubernetes alternates between two reasons and several messages, some with numbers of ports. One sentence for all
    that mean the same keeps the status from changing.
    """
    said = str(_waiting(container).get("message", "")).replace(str(container["image"]), "")
    cause = next((meaning for pattern, meaning in _PULL_CAUSES if pattern.search(said)), None)
    return f"cannot pull {container['image']}" + (f": {cause}" if cause else "")


def _waiting(container: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what kubelet says of a container that waits; empty if it does not."""
    return (container.get("state") or {}).get("waiting") or {}


def setting_up(pods: Iterable[Manifest]) -> Explanation | None:
    """Explain that the set-up script runs in some of these pods, and since when; None if it runs in none."""
    since = sorted(
        (str(state["startedAt"]), name_of(pod))
        for pod in pods
        if (state := _state_of(pod, Container.SETUP).get("running")) and state.get("startedAt")
    )
    if not since:
        return None
    started, pod = since[0]
    more = f" and in {len(since) - 1} more" if len(since) > 1 else ""
    return Explanation(
        Reason.SETTING_UP,
        f"spec.setup runs in pod {pod} since {started}{more}: to see its output, kubectl logs {pod} -c "
        f"{Container.SETUP} --follow",
    )


def _state_of(pod: Manifest, container: str) -> Mapping[str, Any]:
    """Return the state of an init container; empty if kubelet has reported none."""
    for status in pod.get("status", {}).get("initContainerStatuses", ()):
        if status["name"] == container:
            return dict(status.get("state") or {})
    return {}


def _container_trouble(pod: str, container: Mapping[str, Any]) -> Explanation | None:
    if container["name"] == Container.CHECK and (lacking := _lacking(container)):
        return Explanation(Reason.IMAGE_UNFIT, f"pod {pod}, image {container['image']}: {lacking}")
    if container["name"] == Container.SETUP and (failed := _failed(container)):
        return Explanation(Reason.SETUP_FAILED, _of_setup(pod, failed))
    waiting = _waiting(container)
    reason = waiting.get("reason")
    if reason is None or reason in _WAITING_IS_FINE:
        return None
    if reason in _IMAGE_REASONS:
        why = f"pod {pod}, container {container['name']}: {failed_pull(container)}"
        return Explanation(Reason.IMAGE_PULL_FAILED, why)
    last = container.get("lastState", {}).get("terminated", {})
    exit_note = f"; it ended with {last.get('reason')}, exit code {last.get('exitCode')}" if last else ""
    exit_note += f": {plain(said, _MAX_MESSAGE)}" if (said := str(last.get("message") or "")) else ""
    detail = waiting.get("message") or f"image {container.get('image')}"
    return Explanation(str(reason), f"pod {pod}, container {container['name']}: {detail}{exit_note}")


def _lacking(check: Mapping[str, Any]) -> str | None:
    """Return what the container that looks at the image reported."""
    if (ended := _failed(check)) is None:
        return None
    return plain(str(ended.get("message") or f"its Python ended with {ended.get('reason')}"), _MAX_MESSAGE)


def _failed(container: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return how an init container failed, now or, while it runs again, the last time; None if it did not."""
    ended = container.get("state", {}).get("terminated") or container.get("lastState", {}).get("terminated") or {}
    return ended if ended.get("exitCode") else None


def _of_setup(pod: str, failed: Mapping[str, Any]) -> str:
    """Return what happened to the set-up script, with the end of its output."""
    last_lines = str(failed.get("message") or "").strip()[-_MAX_MESSAGE:]
    output = plain(last_lines, _MAX_MESSAGE) or "it has printed nothing"
    return f"pod {pod}: spec.setup ended with exit code {failed.get('exitCode')}, and runs again: {output}"


def _unschedulable(pod: Manifest, scheduler_says: str) -> Explanation:
    selector = pod["spec"].get("nodeSelector") or {}
    asked = _extended_limits(pod["spec"]["containers"])
    where = ", ".join(f"{key}={value}" for key, value in sorted(selector.items()))
    need = ", ".join(f"{key}: {value}" for key, value in sorted(asked.items())) or _requests(pod["spec"]["containers"])
    short = _INSUFFICIENT.findall(scheduler_says)
    missing = f"not enough {', '.join(sorted(set(short)))}" if short else "no node fits"
    on = f" on nodes with {where}" if where else ""
    if cordoned := _CORDONED.search(scheduler_says):
        on += f"; {cordoned[1]} cordoned, which take no pods before `kubectl uncordon NODE` (see `kubectl get nodes`)"
    return Explanation(
        Reason.INSUFFICIENT_RESOURCES if short else Reason.NO_MATCHING_NODE,
        f"{missing}{on}: pod {pod['metadata']['name']} needs {need}. Scheduler: {shortened(scheduler_says)}",
    )


def _requests(containers: Sequence[Mapping[str, Any]]) -> str:
    """Return what the containers request of CPU and memory, such as ``cpu: 100m + 2``."""
    requests = [container.get("resources", {}).get("requests", {}) for container in containers]
    of_each = {key: [str(each[key]) for each in requests if key in each] for key in ("cpu", "memory")}
    return ", ".join(f"{key}: {' + '.join(values)}" for key, values in of_each.items() if values) or "a node"


def _extended_limits(containers: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    limits: dict[str, str] = {}
    for container in containers:
        limits |= {
            key: str(value) for key, value in container.get("resources", {}).get("limits", {}).items() if "/" in key
        }
    return limits
