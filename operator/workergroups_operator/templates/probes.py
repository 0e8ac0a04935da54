"""What kubelet asks Ray's pods, to see whether they live and are ready.

KubeRay's own probes for Ray before 2.53 run wget in the container, and not each image with Ray has it: kubelet would
end such a pod after ten minutes. These ask over HTTP what every Ray that is served answers, and without a token.
"""

from collections.abc import Mapping
from typing import Any

from workergroups_api.vocabulary import Container, Variable

# The head's dashboard says whether the GCS answers; on a worker, Ray's agent says whether the raylet is alive.
_HEALTH = {
    Container.HEAD: {"path": "/api/gcs_healthz", "port": 8265},
    Container.WORKER: {"path": "/api/local_raylet_healthz", "port": 52365},
}
# As KubeRay has them: on a busy node a living Ray may not answer for minutes.
_PERIOD = {"periodSeconds": 5, "timeoutSeconds": 5}
_FAILURES = {"livenessProbe": 120, "readinessProbe": 10}


def with_probes(spec: Mapping[str, Any], container_name: str) -> dict[str, Any]:
    """The pod's spec with probes in that container, but for those that a user's template has.

    What is no pod is returned as it is, and the API server says what is wrong with it.
    """
    containers = spec.get("containers")
    if not isinstance(containers, list):
        return dict(spec)
    return {**spec, "containers": [_probed(each) if _is(each, container_name) else each for each in containers]}


def agent_probes() -> dict[str, Any]:
    """Return the probes of the agent's containers, by which kubelet restarts one that hangs.

    The process keeps its file's time of modification in the future. Each image with Ray has a shell, and needs no more.
    """
    alive = f"${Variable.ALIVE}"
    compare = f': > "{alive}.now" && test "{alive}" -nt "{alive}.now"'
    action = {"exec": {"command": ["sh", "-c", compare]}, "timeoutSeconds": 10}
    return {
        # On a busy node it takes minutes to import what a process needs, and a restart would start that over.
        "startupProbe": {**action, "periodSeconds": 5, "failureThreshold": 60},
        "livenessProbe": {**action, "periodSeconds": 10, "failureThreshold": 3},
    }


def _probed(container: Mapping[str, Any]) -> dict[str, Any]:
    health = {"httpGet": _HEALTH[container["name"]], **_PERIOD}
    ours = {name: {**health, "failureThreshold": failures} for name, failures in _FAILURES.items()}
    return {**ours, **container}


def _is(container: Any, name: str) -> bool:
    return isinstance(container, Mapping) and container.get("name") == name
