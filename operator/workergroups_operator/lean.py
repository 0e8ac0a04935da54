"""What a reconcile keeps of objects that others write: the parts that its steps look at, each within a bound.

All objects of a cluster are in memory at once during a reconcile. Kubernetes bounds neither the number of labels of an
object nor, within 256 KiB, its annotations.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from workergroups_api import names
from workergroups_api.manifest import RAY_CLUSTER, REPLICA_SET, RESOURCE_POOL, Kind, Manifest
from workergroups_operator.observed import NODE_GROUP_LABEL, REMEMBERED
from workergroups_operator.policy.passed_on import passed_on
from workergroups_operator.policy.pod_owners import RAY_LABELS, controller

# Characters of a text. A container's termination message may have 4096 bytes.
MAX_TEXT = 4096
# Items of a list, and fields of an object.
MAX_ITEMS = 64

_IDENTITY = (
    "name",
    "namespace",
    "uid",
    "generation",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_POD_LABELS = (names.CLUSTER_LABEL, names.COMPONENT_LABEL, names.POOL_LABEL, NODE_GROUP_LABEL, *RAY_LABELS)
_POD_ANNOTATIONS = (names.TEMPLATE_ANNOTATION, names.MADE_FROM_ANNOTATION, names.ROLL_ANNOTATION)
_POD_STATUS = ("phase", "conditions", "initContainerStatuses", "containerStatuses")
# Pods of all other owners do not count.
_OWNERS = (RAY_CLUSTER.kind, REPLICA_SET.kind)


def lean_member(kind: Kind, metadata: Manifest) -> Manifest:
    """Return the metadata of a pool or a group with the labels and annotations that the operator reads or passes on.

    They have no bound here: `policy.spec_limits` refuses a pool that has too many, and a group's are only digested.
    """
    annotations = _picked(metadata.get("annotations"), (names.RESTARTED_AT_ANNOTATION, names.WAKE_AT_ANNOTATION))
    if kind is not RESOURCE_POOL:
        return identity(metadata) | {"annotations": annotations}
    labels, passed = (passed_on(metadata, field) for field in ("labels", "annotations"))
    return identity(metadata) | {"labels": labels, "annotations": annotations | passed}


def identity(metadata: Manifest) -> Manifest:
    """Return which object it is, and in which state of its life, without its labels and annotations."""
    return _picked(metadata, _IDENTITY)


def lean_status(status: Any) -> Manifest:
    """Return what remains of the status of an object that cannot be read."""
    found = status if isinstance(status, Mapping) else {}
    return _bounded_part(found, ("conditions", "observedGeneration", *REMEMBERED))


def lean_pod(pod: Manifest) -> Manifest:
    """Return the pod; of a pod that cannot be the cluster's, only its identity, labels and owner."""
    metadata, owner = pod["metadata"], controller(pod)
    lean = {
        **identity(metadata),
        "labels": _picked(metadata.get("labels"), _POD_LABELS),
        "annotations": _bounded_part(metadata.get("annotations"), _POD_ANNOTATIONS),
        "ownerReferences": [bounded(owner)] if owner else [],
    }
    if owner.get("kind") not in _OWNERS:
        return {"metadata": lean | {"annotations": {}}, "spec": {}, "status": {}}
    spec, status = pod["spec"], pod.get("status") or {}
    containers = [_picked(each, ("name", "resources")) for each in spec["containers"]]
    kept = _picked(spec, ("nodeName", "nodeSelector")) | {"containers": containers}
    return {"metadata": lean, "spec": bounded(kept), "status": _bounded_part(status, _POD_STATUS)}


def lean_event(event: Manifest) -> Manifest:
    """Return what an Event says, and when."""
    return _bounded_part(event, ("lastTimestamp", "eventTime", "message"))


def lean_workload(workload: Manifest) -> Manifest:
    """Return what Kueue tells in a Workload."""
    return {
        "metadata": identity(workload["metadata"]),
        "spec": _bounded_part(workload.get("spec"), ("queueName", "active")),
        "status": _bounded_part(workload.get("status"), ("conditions", "admissionChecks", "admission")),
    }


def _bounded_part(found: Mapping[str, Any] | None, keys: Iterable[str]) -> Manifest:
    return {key: bounded(value) for key, value in _picked(found, keys).items()}


def bounded(value: Any) -> Any:
    """Return the value with its texts, lists and objects cut at their bounds."""
    if isinstance(value, str):
        return value[:MAX_TEXT]
    if isinstance(value, Mapping):
        return {key[:MAX_TEXT]: bounded(each) for key, each in islice(value.items(), MAX_ITEMS)}
    return [bounded(each) for each in value[:MAX_ITEMS]] if isinstance(value, list) else value


def _picked(found: Mapping[str, Any] | None, keys: Iterable[str]) -> Manifest:
    return {key: found[key] for key in keys if key in found} if found else {}
