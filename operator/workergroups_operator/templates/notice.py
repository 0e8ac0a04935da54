"""Tell a node's ranks before its pod ends, and end the node as soon as they have answered."""

from collections.abc import Mapping
from typing import Any

# So long ranks may take to answer, unless the user's template has another grace period.
SECONDS = 30
FILE = "/tmp/workergroups-notice"
"""By which ranks learn of it; each start of the container has its own."""


def with_notice(spec: Mapping[str, Any], container_name: str, kill_seconds: int) -> dict[str, Any]:
    """Return the pod's spec with a notice before the container of that name ends, unless the user runs something then.

    Of the pod's grace period, the ranks do not get the last `kill_seconds`. The spec may be any JSON, as a user's
    template may be; the API server explains what is wrong with it.
    """
    grace, containers = spec.get("terminationGracePeriodSeconds"), spec.get("containers")
    if type(grace) is not int or not isinstance(containers, list):
        return dict(spec)
    command = ["python3", "-m", "workergroups.node.notice", str(max(grace - kill_seconds, 0))]
    return {**spec, "containers": [_with_command(each, container_name, command) for each in containers]}


def _with_command(container: Any, name: str, command: list[str]) -> Any:
    if not isinstance(container, Mapping) or container.get("name") != name:
        return container
    lifecycle = container.get("lifecycle") or {}
    if not isinstance(lifecycle, Mapping) or "preStop" in lifecycle:
        return container
    return {**container, "lifecycle": {**lifecycle, "preStop": {"exec": {"command": command}}}}
