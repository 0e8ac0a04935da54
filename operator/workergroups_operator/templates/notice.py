"""Tell a node's ranks before its pod ends, and end the node as soon as they have answered."""

from collections.abc import Mapping
from typing import Any

from workergroups_api.resource_pool import ResourcePool

# So long ranks may take to answer, unless the user's template has another grace period.
SECONDS = 30
# Then Kubernetes kills what is left. KubeRay starts Ray under a shell that forwards no signal: more would only hold
# devices for longer.
TERMINATION_SECONDS = 5
FILE = "/tmp/workergroups-notice"
"""By which ranks learn of it; each start of the container has its own."""


def seconds_of(pool: ResourcePool) -> int:
    """Return how long the pool's ranks may take to answer a notice."""
    template = pool.spec.pod_template
    seconds = _seconds(template.spec or {}) if template else None
    return SECONDS if seconds is None else seconds


def with_notice(spec: Mapping[str, Any], container_name: str) -> dict[str, Any]:
    """Return the pod's spec with a notice before the container of that name ends, unless the user runs something then.

    The spec may be any JSON, as a user's template may be; the API server explains what is wrong with it.
    """
    seconds, containers = _seconds(spec), spec.get("containers")
    if seconds is None or not isinstance(containers, list):
        return dict(spec)
    command = ["python3", "-m", "workergroups.node.notice", str(seconds)]
    return {**spec, "containers": [_with_command(each, container_name, command) for each in containers]}


def _seconds(spec: Mapping[str, Any]) -> int | None:
    grace = spec.get("terminationGracePeriodSeconds")
    return max(grace - TERMINATION_SECONDS, 0) if type(grace) is int else None


def _with_command(container: Any, name: str, command: list[str]) -> Any:
    if not isinstance(container, Mapping) or container.get("name") != name:
        return container
    lifecycle = container.get("lifecycle") or {}
    if not isinstance(lifecycle, Mapping) or "preStop" in lifecycle:
        return container
    return {**container, "lifecycle": {**lifecycle, "preStop": {"exec": {"command": command}}}}
