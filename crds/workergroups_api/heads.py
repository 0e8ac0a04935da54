"""Which life of Ray's head runs: jobs on it end with its container, and the session too if the GCS keeps no state."""

from collections.abc import Iterable, Iterator

from workergroups_api.manifest import Manifest
from workergroups_api.vocabulary import Container

HEAD_AWAY_SECONDS = 600
"""How long nodes and ranks wait for a head that starts again; Ray's default is a minute."""

SILENT_SECONDS = 20
"""For so long, the other end of a connection may not answer; Ray's default is two minutes."""
KEEPALIVE = {
    "RAY_grpc_client_keepalive_time_ms": str(SILENT_SECONDS * 1000),
    "RAY_grpc_client_keepalive_timeout_ms": str(SILENT_SECONDS * 1000),
}
"""A head whose machine loses its power closes no connection. Until raylets miss it, the next head hears of no death."""


def running_heads(pods: Iterable[Manifest]) -> Iterator[str]:
    """Yield what identifies each running start of the head's container in these pods, also in pods that are leaving."""
    for pod in pods:
        for container in pod.get("status", {}).get("containerStatuses") or ():
            if container["name"] == Container.HEAD and "running" in container.get("state", {}):
                yield f"{pod['metadata']['uid']}/{container.get('containerID') or container['restartCount']}"
