"""The condition Admitted: whether a queue lets the pool's cluster run. There is none if the cluster is not queued.

What the RayCluster says decides, since KubeRay starts pods whenever `spec.suspend` is not true. The queue's own words,
from Kueue's Workload, explain it.
"""

from workergroups_api.conditions import ConditionStatus, Explanation, Finding
from workergroups_api.manifest import Manifest
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import ConditionType, Reason
from workergroups_operator.observed import Queueing
from workergroups_operator.policy.queueing import (
    is_admitted_without,
    is_held,
    is_suspended,
    queue_of,
    workload_condition,
)
from workergroups_operator.status.conclusion import StatusInputs, finding


def admitted(pool: ResourcePool, inputs: StatusInputs) -> Finding | None:
    """Find out whether the pool's cluster may run; None if no queue has a say."""
    observed = inputs.observed
    cluster, queueing = observed.ray_cluster, observed.queueing
    if cluster is None or (queue_of(cluster) is None and queueing.workload is None):
        return None
    if is_suspended(cluster):
        return _held_back(cluster, queueing)
    if is_admitted_without(pool, observed):
        why = (
            f"RayCluster {observed.key.name} was admitted without this pool, and with it the queue would end what runs "
            "and queue the cluster again: give the pool its own spec.clusterName, or delete the RayCluster, which "
            "ends its ranks and queues it with all its pools"
        )
        return _finding("False", Reason.ADMITTED_WITHOUT_POOL, why)
    if is_held(observed):
        return _finding("True", Reason.ADMITTED, _admission(queueing))
    why = (
        f"RayCluster {observed.key.name} names queue {queue_of(cluster)}, but runs without an admission: Kueue is not "
        "installed, or does not manage RayClusters in this namespace"
    )
    return _finding("True", Reason.NOT_QUEUED, why)


def _held_back(cluster: Manifest, queueing: Queueing) -> Finding:
    """Explain, in Kueue's words as far as there are any, why the RayCluster is suspended."""
    where = f"RayCluster {cluster['metadata']['name']} waits in queue {queue_of(cluster) or '(none named)'}"
    workload = queueing.workload
    if queueing.unreadable is not None:
        return _finding("False", Reason.QUEUED, f"{where}; the operator cannot read Workloads: {queueing.unreadable}")
    if workload is None:
        what = f"{where}; Kueue has no Workload for it yet: if this lasts, see whether Kueue manages RayClusters here"
        return _finding("False", Reason.QUEUED, what)
    name = workload["metadata"]["name"]
    if (said := _said(workload, "Finished", "True")) is not None:
        what = f"Kueue has ended Workload {name} ({said}): delete the RayCluster to queue it again"
        return _finding("False", Reason.ADMISSION_ENDED, what)
    place = f"; place {queueing.place} in its ClusterQueue" if queueing.place else ""
    if (said := _said(workload, "Evicted", "True")) is not None:
        return _finding("False", Reason.EVICTED, f"Kueue has evicted the cluster ({said}){_again(workload)}{place}")
    waits_for = _said(workload, "QuotaReserved", "False") or _said(workload, "Admitted", "False") or _checks(workload)
    said = f"; Kueue: {waits_for}" if waits_for else ""
    return _finding("False", Reason.QUEUED, f"{where} as Workload {name}{place}{said}")


def _again(workload: Manifest) -> str:
    """Say what follows an eviction."""
    if (workload.get("spec") or {}).get("active") is False:
        return f": to queue it again, set spec.active of Workload {workload['metadata']['name']} to true"
    return "; it waits for its next admission"


def _said(workload: Manifest, type_: str, status: str) -> str | None:
    """Return reason and message of a condition of the Workload that has this status."""
    found = workload_condition(workload, type_)
    return f"{found.get('reason')}: {found.get('message', '')}" if found.get("status") == status else None


def _checks(workload: Manifest) -> str:
    """Return what the admission checks say that have not passed."""
    checks = (workload.get("status") or {}).get("admissionChecks") or ()
    return ", ".join(f"{each.get('name')} is {each.get('state')}" for each in checks if each.get("state") != "Ready")


def _admission(queueing: Queueing) -> str:
    if queueing.workload is None:
        return f"the RayCluster was resumed; the operator cannot read Workloads: {queueing.unreadable}"
    admission = (queueing.workload.get("status") or {}).get("admission") or {}
    return f"by ClusterQueue {admission['clusterQueue']}" if "clusterQueue" in admission else "by Kueue"


def _finding(status: ConditionStatus, reason: Reason, message: str) -> Finding:
    """Return a finding. Waiting for a queue is no failure, so no deadline applies while it is not True."""
    return finding(ConditionType.ADMITTED, status, Explanation(reason, message), final=status != "True")
