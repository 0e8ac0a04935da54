"""Read what Kueue shows of a RayCluster: its Workload, which waits in a queue on its behalf, and its place there.

Kueue may not be installed, and it may be older or newer: what cannot be read is unknown, and never ends a reconcile.
"""

import asyncio
import logging
from typing import Any

from kubernetes.aio.dynamic.exceptions import NotFoundError

from workergroups_api.manifest import Kind, Manifest
from workergroups_kube import API_ERRORS, Kube, api_error_message
from workergroups_operator.lean import lean_workload
from workergroups_operator.observed import Queueing
from workergroups_operator.policy.queueing import is_queued, is_waiting

LOGGER = logging.getLogger(__name__)
_WORKLOADS = tuple(Kind(f"kueue.x-k8s.io/{version}", "Workload", "workloads") for version in ("v1beta2", "v1beta1"))
_LOCAL_QUEUES = tuple(
    Kind(f"visibility.kueue.x-k8s.io/{version}", "LocalQueue", "localqueues") for version in ("v1beta2", "v1beta1")
)
# For how long a reconcile waits for what statuses can do without: such reads may be slow where no others are.
ASIDE_SECONDS = 1.0
_OF_JOB = "kueue.x-k8s.io/job-uid"


async def queueing(client: Kube, namespace: str, ray_cluster: Manifest | None) -> Queueing:
    """Return what Kueue shows of a RayCluster; nothing, without a request, if it is neither queued nor suspended."""
    if ray_cluster is None or not is_queued(ray_cluster):
        return Queueing()
    try:
        async with asyncio.timeout(ASIDE_SECONDS):
            workload = await _workload(client, namespace, ray_cluster["metadata"]["uid"])
    except API_ERRORS as error:
        LOGGER.warning("%s/%s: %s", namespace, ray_cluster["metadata"]["name"], api_error_message(error)[:500])
        return Queueing(unreadable=api_error_message(error)[:200])
    if workload is None or not is_waiting(workload):
        return Queueing(workload)
    try:
        async with asyncio.timeout(ASIDE_SECONDS):
            return Queueing(workload, await _place(client, namespace, workload))
    except TimeoutError:
        return Queueing(workload)


async def _workload(client: Kube, namespace: str, uid: str) -> Manifest | None:
    """Return the latest Workload of the RayCluster; None if there is none, or if there is no Kueue."""
    for kind in _WORKLOADS:
        try:
            return await client.latest(kind, namespace, lean_workload, _created, label_selector=f"{_OF_JOB}={uid}")
        except NotFoundError:
            continue
    return None


def _created(workload: Manifest) -> str:
    return str(workload["metadata"].get("creationTimestamp"))


async def _place(client: Kube, namespace: str, workload: Manifest) -> int | None:
    """Return the Workload's place in its ClusterQueue, from 1; None if it is unknown."""
    queue, name = str((workload.get("spec") or {}).get("queueName", "")), workload["metadata"]["name"]
    for kind in _LOCAL_QUEUES if queue else ():
        try:
            found = await client.get(kind, namespace, queue, subresource="pendingworkloads")
        except API_ERRORS:
            continue
        if found is not None:
            return _place_among(found.get("items") or (), name)
    return None


def _place_among(items: Any, name: str) -> int | None:
    places = (each.get("positionInClusterQueue", 0) for each in items if each["metadata"]["name"] == name)
    return next((int(place) + 1 for place in places), None)
