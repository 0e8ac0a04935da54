"""Whether a queue holds a RayCluster back, or runs it as it was admitted. The queue is Kueue.

Kueue suspends a RayCluster when it is created, waits for quota, writes what the admission adds into the pod templates
(node selectors, tolerations, labels), and resumes it. From then on it compares the pods that the RayCluster asks for
with those that it admitted. If they differ, it suspends the RayCluster, which ends all its pods, and queues it again.
So the operator never writes `spec.suspend`, writes the rest of a RayCluster only while that is suspended, and refuses
what would need more than that: a further pool on a cluster that has been admitted.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from workergroups_api.manifest import Manifest
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import Component
from workergroups_operator.observed import Observed, node_group_of
from workergroups_operator.policy.passed_on import QUEUE_LABEL, passed_on

# The pools of a cluster may come one after the other: a queued cluster waits for this time, in seconds, before it is
# created, since a pool that comes after the admission comes too late.
GATHER_SECONDS = 3.0


def queue_of(ray_cluster: Manifest) -> str | None:
    """Return the queue that a RayCluster names."""
    found = (ray_cluster["metadata"].get("labels") or {}).get(QUEUE_LABEL)
    return None if found is None else str(found)


def is_suspended(ray_cluster: Manifest) -> bool:
    """Return whether the RayCluster is suspended."""
    return bool(_spec(ray_cluster).get("suspend"))


def is_cluster_suspended(observed: Observed) -> bool:
    """Return whether there is a RayCluster and it has no pods, since its queue or a person has suspended it."""
    return observed.ray_cluster is not None and is_suspended(observed.ray_cluster)


def is_queued(ray_cluster: Manifest) -> bool:
    """Return whether a queue may have a say: one is named, or another writer than the operator has set `suspend`."""
    return queue_of(ray_cluster) is not None or "suspend" in _spec(ray_cluster)


def is_held(observed: Observed) -> bool:
    """Return whether Kueue runs the RayCluster as it was admitted, so that the operator must not write it.

    If that is unknown, a RayCluster that was resumed is left alone, too: a write could end everything in it.
    """
    cluster, queueing = observed.ray_cluster, observed.queueing
    if cluster is None or is_suspended(cluster) or "suspend" not in _spec(cluster):
        return False
    return queueing.workload is not None or queueing.unreadable is not None


def is_in_old_queue(observed: Observed) -> bool:
    """Return whether Kueue has evicted the RayCluster from another queue than that which it names now.

    Kueue never changes the queue of a Workload that it has evicted, so the RayCluster would wait in the old one.
    """
    cluster, workload = observed.ray_cluster, observed.queueing.workload
    if cluster is None or workload is None or not is_suspended(cluster) or not is_waiting(workload):
        return False
    has_pods = any(observed.pods_of(component) for component in (Component.HEAD, Component.WORKER))
    is_moved = queue_of(cluster) not in (None, _spec(workload).get("queueName"))
    return is_moved and not has_pods and _is_true(workload, "Evicted")


def keeps_refused(observed: Observed) -> bool:
    """Return whether node groups whose pods are refused stay in the RayCluster: a queue must admit all of it."""
    cluster = observed.ray_cluster
    if cluster is None:
        return bool(observed.pools) and QUEUE_LABEL in passed_on(observed.pools[0].metadata, "labels")
    return is_suspended(cluster) and (queue_of(cluster) is not None or observed.queueing.workload is not None)


def is_gathering(observed: Observed) -> bool:
    """Return whether a queued cluster that does not exist yet may get further pools within a moment."""
    if observed.ray_cluster is not None or not keeps_refused(observed):
        return False
    created = (datetime.fromisoformat(str(pool.metadata["creationTimestamp"])) for pool in observed.pools)
    ages = [(observed.at - each).total_seconds() for each in created]
    return any(0 <= age < GATHER_SECONDS for age in ages)


def is_admitted_without(pool: ResourcePool, observed: Observed) -> bool:
    """Return whether the RayCluster runs as it was admitted, and that was without the pool."""
    return is_held(observed) and observed.live_node_group(node_group_of(pool)) is None


def is_waiting(workload: Manifest) -> bool:
    """Return whether a Workload waits for quota."""
    return not _is_true(workload, "QuotaReserved") and not _is_true(workload, "Finished")


def workload_condition(workload: Manifest, type_: str) -> dict[str, Any]:
    """Return a condition of a Workload; it is empty if there is none."""
    conditions: Sequence[dict[str, Any]] = (workload.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == type_), {})


def _is_true(workload: Manifest, type_: str) -> bool:
    return workload_condition(workload, type_).get("status") == "True"


def _spec(body: Manifest) -> dict[str, Any]:
    return body.get("spec") or {}
