"""Find the head of a Ray cluster, or say why there is none."""

from __future__ import annotations

from workergroups_api.vocabulary import Component

from ..api_server.cluster import Cluster
from ..errors import NotRunningError
from ..objects import names
from ..objects.readiness import why
from ..objects.status import status_of


def head_pod(cluster: Cluster, ray_cluster: str) -> str:
    """Return the name of the pod in which the head of a Ray cluster runs.

    Raises:
        NotRunningError: The head is not running; the message says what its pools wait for.
    """
    pods = names.running_pods(cluster, ray_cluster, Component.HEAD)
    if pods:
        return str(pods[0]["metadata"]["name"])
    pools = [each for each in names.list_all(cluster, names.POOL) if names.ray_cluster(cluster, each) == ray_cluster]
    waiting = [status for status in map(status_of, pools) if not status.is_ready]
    reasons = [f"pool {status.name}: {why(status)}" for status in waiting]
    raise NotRunningError(
        f"the head of Ray cluster {ray_cluster} is not running in namespace {cluster.namespace}: "
        + ("; ".join(reasons) or "workergroups status says what its pool waits for")
    )
