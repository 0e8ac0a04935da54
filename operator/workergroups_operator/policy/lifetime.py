"""Which objects belong to the present pools, and which to deleted ones that had their names.

A pool never takes over the objects of a deleted pool of the same name. It waits until the garbage collector has deleted
them, so that no image, token or rank of the old pool is used again.
"""

from workergroups_api import names
from workergroups_api.conditions import Explanation
from workergroups_api.manifest import RAY_CLUSTER, SERVICE, Manifest, annotations_of
from workergroups_api.vocabulary import Reason
from workergroups_operator.observed import Observed


def obstacle(observed: Observed, *, is_off: bool = False) -> Explanation | None:
    """Explain what must be deleted before the operator can write anything; None if nothing is in the way.

    If the cluster is off, nothing starts that could take over what an earlier RayCluster left.
    """
    for (kind, name), body in sorted(observed.children.items()):
        if kind == SERVICE.kind:
            continue
        if body["metadata"].get("labels", {}).get(names.CLUSTER_LABEL) != observed.key.name:
            return _taken(kind, name)
        if not _owners(body):
            is_ours = names.MANIFEST_ANNOTATION in annotations_of(body)
            return _orphaned(kind, name) if is_ours else _taken(kind, name)
        if not is_of_a_present_pool(body, observed):
            return _leaving(f"{kind} {name}")
    return None if is_off else _service_obstacle(observed) or _pod_obstacle(observed)


def is_of_a_present_pool(body: Manifest, observed: Observed) -> bool:
    """Return whether one of the present pools owns the object."""
    odd = {str(odd.body["metadata"]["uid"]) for odd in observed.unreadable}
    return bool(_owners(body) & ({pool.uid for pool in observed.pools} | odd))


def _service_obstacle(observed: Observed) -> Explanation | None:
    """KubeRay would silently use any service that has the name of the head's service."""
    name = names.head_service_name(observed.key.name)
    service = observed.children.get((SERVICE.kind, name))
    if service is None:
        return None
    owners = [owner for owner in service["metadata"].get("ownerReferences", ()) if owner["kind"] == RAY_CLUSTER.kind]
    if not owners:
        return _taken(SERVICE.kind, name)
    if observed.ray_cluster is None or _uid(observed.ray_cluster) not in _owners(service):
        return _leaving(f"Service {name}")
    return None


def _pod_obstacle(observed: Observed) -> Explanation | None:
    """KubeRay would take the pods of an earlier RayCluster for those of the next one."""
    for pod in observed.previous_pods:
        node = pod.get("spec", {}).get("nodeName")
        return _leaving(f"pod {pod['metadata']['name']}" + (f" on node {node}" if node else ""))
    return None


def _leaving(what: str) -> Explanation:
    return Explanation(
        Reason.PREVIOUS_LEAVING,
        f"waiting until what an earlier cluster of this name left is deleted: {what}",
    )


def _taken(kind: str, name: str) -> Explanation:
    return Explanation(
        Reason.NAME_TAKEN,
        f"{kind} {name} exists and was not created by WorkerGroups: delete it, or give the pool another "
        "spec.clusterName",
    )


def _orphaned(kind: str, name: str) -> Explanation:
    return Explanation(
        Reason.NAME_TAKEN,
        f"{kind} {name} is of an earlier cluster of this name and has no owner any more, as after "
        "kubectl delete --cascade=orphan, so nothing deletes it: delete it, or give the pool another spec.clusterName",
    )


def _owners(body: Manifest) -> set[str]:
    return {str(owner["uid"]) for owner in body["metadata"].get("ownerReferences", ())}


def _uid(body: Manifest) -> str:
    return str(body["metadata"]["uid"])
