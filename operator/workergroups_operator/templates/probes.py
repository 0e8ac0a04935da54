"""The probes by which kubelet sees whether Ray's pods live and are ready.

For Ray before 2.53, KubeRay's own probes run wget in the container. Not every image has wget, and kubelet would kill
such a pod after ten minutes. These probes use HTTP; every supported Ray answers them, without a token.
"""

from collections.abc import Mapping
from typing import Any

from workergroups_api.vocabulary import Container, Variable

DASHBOARD_PORT = 8265
# The head's dashboard says whether the GCS answers; on a worker, Ray's agent says whether the raylet is alive.
_HEALTH = {
    Container.HEAD: {"path": "/api/gcs_healthz", "port": DASHBOARD_PORT},
    Container.WORKER: {"path": "/api/local_raylet_healthz", "port": 52365},
}
# As in KubeRay: on a busy node, a healthy Ray may not answer for minutes.
_PERIOD = {"periodSeconds": 5, "timeoutSeconds": 5}
_FAILURES = {"livenessProbe": 120, "readinessProbe": 10}


def with_probes(spec: Mapping[str, Any], container_name: str) -> dict[str, Any]:
    """Return the pod's spec with probes in that container, except for probes that a user's template sets.

    A spec that is no pod stays as it is; the API server explains what is wrong with it.
    """
    containers = spec.get("containers")
    if not isinstance(containers, list):
        return dict(spec)
    return {**spec, "containers": [_probed(each) if _is(each, container_name) else each for each in containers]}


def agent_probes() -> dict[str, Any]:
    """Return the probes of the agent's containers, which make kubelet restart a container that hangs.

    The process keeps the modification time of its file in the future. The probes need only a shell, which each image
    with Ray has.
    """
    alive = f"${Variable.ALIVE}"
    compare = f': > "{alive}.now" && test "{alive}" -nt "{alive}.now"'
    action = {"exec": {"command": ["sh", "-c", compare]}, "timeoutSeconds": 10}
    return {
        # On a busy node, a process needs minutes for its imports, and a restart would begin them again.
        "startupProbe": {**action, "periodSeconds": 5, "failureThreshold": 60},
        "livenessProbe": {**action, "periodSeconds": 10, "failureThreshold": 3},
    }


def _probed(container: Mapping[str, Any]) -> dict[str, Any]:
    health = {"httpGet": _HEALTH[container["name"]], **_PERIOD}
    ours = {name: {**health, "failureThreshold": failures} for name, failures in _FAILURES.items()}
    return {**ours, **container}


def _is(container: Any, name: str) -> bool:
    return isinstance(container, Mapping) and container.get("name") == name
