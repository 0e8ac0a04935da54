"""What all manifests of a cluster share: its label, all its pools as owners, and a digest of the manifest.

Kubernetes deletes an object when its last owner is gone. So the operator needs no finalizer, and a stopped operator
never blocks a deletion.
"""

from collections.abc import Sequence

from workergroups_api.launch import digest
from workergroups_api.manifest import RAY_CLUSTER, Manifest
from workergroups_api.names import API_VERSION, CLUSTER_LABEL, MANIFEST_ANNOTATION
from workergroups_api.resource_pool import ResourcePool
from workergroups_operator.membership import ClusterKey
from workergroups_operator.observed import Observed
from workergroups_operator.policy.queueing import is_queued


def owned(manifest: Manifest, key: ClusterKey, pools: Sequence[ResourcePool]) -> Manifest:
    """Return the manifest in the cluster's namespace, with its label, owners and digest."""
    metadata = manifest["metadata"]
    owners = [{"apiVersion": API_VERSION, "kind": "ResourcePool", "name": pool.name, "uid": pool.uid} for pool in pools]
    whole = manifest | {
        "metadata": metadata
        | {
            "namespace": key.namespace,
            "labels": {**metadata.get("labels", {}), CLUSTER_LABEL: key.name},
            "ownerReferences": owners,
        }
    }
    annotations = {**metadata.get("annotations", {}), MANIFEST_ANNOTATION: digest(whole)}
    return whole | {"metadata": whole["metadata"] | {"annotations": annotations}}


def guarded(manifest: Manifest, observed: Observed) -> Manifest:
    """Return the manifest so that the API server refuses it if a queue may have resumed the RayCluster meanwhile."""
    live = observed.ray_cluster
    if manifest["kind"] != RAY_CLUSTER.kind or live is None or not is_queued(live):
        return manifest
    return manifest | {"metadata": manifest["metadata"] | {"resourceVersion": live["metadata"]["resourceVersion"]}}
