"""What all manifests of a cluster share: its label, all its pools as owners, and a digest of the manifest.

Kubernetes deletes an object when its last owner is gone. So the operator needs no finalizer, and a stopped operator
never blocks a deletion.
"""

from workergroups_api.launch import digest
from workergroups_api.manifest import RAY_CLUSTER, RESOURCE_POOL, Manifest, identity
from workergroups_api.names import CLUSTER_LABEL, MANIFEST_ANNOTATION
from workergroups_operator.observed import Observed
from workergroups_operator.policy.queueing import is_queued


def owned(manifest: Manifest, observed: Observed) -> Manifest:
    """Return the manifest in the cluster's namespace, with its label, owners and digest."""
    metadata = manifest["metadata"]
    placed = {
        "namespace": observed.key.namespace,
        "labels": {**metadata.get("labels", {}), CLUSTER_LABEL: observed.key.name},
    }
    whole = manifest | {"metadata": metadata | placed}
    annotations = {**metadata.get("annotations", {}), MANIFEST_ANNOTATION: digest(whole)}
    added = {"annotations": annotations, "ownerReferences": _owners(observed, identity(manifest))}
    return whole | {"metadata": whole["metadata"] | added}


def _owners(observed: Observed, child: tuple[str, str]) -> list[Manifest]:
    """Return all pools as owners, after those that the object has already, even if their pools are gone.

    Only the garbage collector removes an owner. It asks for the owners one after the other: it may find the first just
    before that one is deleted, then miss the second and remove it. If the operator removed the first meanwhile, the
    object would have no owner, and nobody would ever delete it.
    """
    live = observed.children.get(child, {}).get("metadata", {}).get("ownerReferences") or ()
    known = [
        {key: owner[key] for key in ("apiVersion", "kind", "name", "uid")}
        for owner in live
        if (owner["apiVersion"], owner["kind"]) == (RESOURCE_POOL.api_version, RESOURCE_POOL.kind)
    ]
    uids = {owner["uid"] for owner in known}
    return known + [RESOURCE_POOL.reference(pool.name, pool.uid) for pool in observed.pools if pool.uid not in uids]


def guarded(manifest: Manifest, observed: Observed) -> Manifest:
    """Return the manifest so that the API server refuses it if the RayCluster has gone meanwhile, or may have resumed.

    Of one that has gone, the manifest has the head, which would be old in a new one at once. A queue resumes another.
    """
    live = observed.ray_cluster
    if manifest["kind"] != RAY_CLUSTER.kind or live is None:
        return manifest
    known = ("uid", "resourceVersion") if is_queued(live) else ("uid",)
    return manifest | {"metadata": manifest["metadata"] | {field: live["metadata"][field] for field in known}}
