"""The RayCluster: a head, and a node group for each pool, which KubeRay calls a worker group."""

from collections.abc import Collection, Iterable, Mapping

from workergroups_api.conditions import Explanation
from workergroups_api.manifest import RAY_CLUSTER, Manifest, annotations_of
from workergroups_api.names import (
    DEFAULT_IMAGE_ANNOTATION,
    HEAD_IMAGE_ANNOTATION,
    LIBRARY_IMAGE_ANNOTATION,
    POOL_LABEL,
    REPLACED_HEAD_ANNOTATION,
    TLS_ANNOTATION,
    TOKEN_ANNOTATION,
    token_secret_name,
)
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import Component, Container, Reason
from workergroups_operator.observed import NODE_GROUP_LABEL, Observed, node_group_of
from workergroups_operator.policy.keep_unreadable import kept_node_groups
from workergroups_operator.policy.leaving_pods import Replicas
from workergroups_operator.policy.passed_on import passed_on
from workergroups_operator.policy.pod_owners import mistaken_nodes
from workergroups_operator.policy.queueing import keeps_refused
from workergroups_operator.policy.roll import Roll
from workergroups_operator.templates import Templates
from workergroups_operator.templates.outdated import superseded
from workergroups_operator.templates.ray_start import head_start, node_start

# KubeRay requires a version that supports tokens. An init container finds out which one an image really has.
_AT_LEAST = "2.52.0"
# How many foreign pods the RayCluster tells KubeRay to delete at once, so that they cannot make it large.
MAX_COPIES = 16
NO_ROLLS: Mapping[str, Roll] = {}
# The head keeps its address when its pod moves. KubeRay's default service has no fixed address, and gRPC, with which
# nodes find the head again, looks a name up once in 30 s.
_HEAD_SERVICE: Manifest = {"spec": {"type": "ClusterIP", "publishNotReadyAddresses": True}}
# The API server has not said whether it accepts a pod.
_UNKNOWN = (Reason.ADMISSION_PENDING, Reason.APPLY_FAILED)


def ray_cluster(
    observed: Observed,
    templates: Templates,
    refused: Mapping[str, Explanation],
    replicas: Mapping[str, Replicas],
    token_digest: str,
    suspended: Collection[str] = (),
    rolls: Mapping[str, Roll] = NO_ROLLS,
) -> Manifest:
    """Return the RayCluster that starts with the token of this digest.

    Args:
        observed: What exists.
        templates: The pod templates.
        refused: Why pods are refused, by node group, or why that is not known yet.
        replicas: How many pods each pool has.
        token_digest: Digest of Ray's token.
        suspended: Names of the pools that have no nodes. The oldest pool shapes the head, also while it is suspended.
        rolls: The rolls that are not over, by node group.
    """
    key, images, oldest = observed.key, templates.images, observed.pools[0].metadata
    if keeps_refused(observed):
        refused = {}
    groups = [
        group
        for pool in observed.pools
        if pool.name not in suspended
        and (group := _node_group(observed, templates, refused, pool, replicas[pool.name], rolls))
    ]
    retiring = _retiring_node_groups(observed, {str(group["groupName"]) for group in groups}, suspended)
    annotations = {
        TOKEN_ANNOTATION: token_digest,
        HEAD_IMAGE_ANNOTATION: images.head,
        DEFAULT_IMAGE_ANNOTATION: images.default,
        LIBRARY_IMAGE_ANNOTATION: images.library,
        **({TLS_ANNOTATION: "true"} if observed.uses_tls else {}),
        **_replaced_head(observed, templates),
        **passed_on(oldest, "annotations"),
    }
    labels = passed_on(oldest, "labels")
    spec = {
        "rayVersion": _AT_LEAST,
        # Without an explicit mode, KubeRay would create a Secret and leave the pods open.
        "authOptions": {"mode": "token", "secretName": token_secret_name(key.name)},
        "headGroupSpec": {**head_start(templates.head), "headService": _HEAD_SERVICE, "template": templates.head},
        "workerGroupSpecs": [*groups, *retiring],
    }
    metadata = {"name": key.name, "annotations": annotations} | ({"labels": labels} if labels else {})
    return RAY_CLUSTER.manifest(metadata, spec=spec)


def _replaced_head(observed: Observed, templates: Templates) -> dict[str, str]:
    """Return the note of the head's pod that must be replaced, in the same write as its new template."""
    live = annotations_of(observed.ray_cluster)
    noted = [str(pod["metadata"]["uid"]) for pod in observed.pods_of(Component.HEAD)] if templates.replaces_head else []
    noted += [live[REPLACED_HEAD_ANNOTATION]] if REPLACED_HEAD_ANNOTATION in live else []
    return {REPLACED_HEAD_ANNOTATION: noted[0]} if noted else {}


def _node_group(
    observed: Observed,
    templates: Templates,
    refused: Mapping[str, Explanation],
    pool: ResourcePool,
    size: Replicas,
    rolls: Mapping[str, Roll],
) -> Manifest | None:
    """Return the pool's node group; if its pods are refused, or may be, what remains of the live one."""
    name = node_group_of(pool)
    if name in refused:
        live, kept = observed.live_node_group(name), _kept_replicas(observed, name, refused[name], size)
        if live is None or not (kept or observed.all_pods_of(name)):
            return None
        return live | _count(kept) | {"maxReplicas": max(kept, 1)} | _to_delete(size.leaving)
    template = templates.of(pool)
    copies = mistaken_nodes(observed.key.name, name, observed.foreign_pods)
    pods = observed.pods_of(Component.WORKER, name)
    replaced = rolls[name].next if name in rolls else superseded(pods, template)
    in_the_way = [*replaced, *copies[:MAX_COPIES]]
    to_delete = dict.fromkeys([*size.leaving, *in_the_way])
    return {
        "groupName": name,
        **_count(size.count),
        **node_start(pool, template),
        "template": template,
        **_to_delete(to_delete),
    }


def _kept_replicas(observed: Observed, name: str, why: Explanation, size: Replicas) -> int:
    """Return how many pods a live node group keeps whose pods are refused, or of which that is not known yet.

    KubeRay stops at the first group for which it cannot create a pod, so that the groups after it would get none. But
    as long as that is unknown, it may be creating pods that were accepted a moment ago, and would delete them.
    """
    if why.reason in _UNKNOWN:
        return min(int((observed.live_node_group(name) or {}).get("replicas") or 0), size.count)
    return min(len(observed.all_pods_of(name)), size.count)


def _count(pods: int) -> Manifest:
    return {"replicas": pods, "minReplicas": pods, "maxReplicas": pods}


def _to_delete(names: Iterable[str]) -> Manifest:
    """Return the pods that KubeRay deletes; it creates others if fewer are left than there must be."""
    return {"scaleStrategy": {"workersToDelete": found}} if (found := list(names)) else {}


def _retiring_node_groups(observed: Observed, wanted: set[str], suspended: Collection[str]) -> list[Manifest]:
    """Return the groups of deleted and suspended pools, without replicas, until their pods are gone too.

    KubeRay forgets the pods of a group that is no longer in the spec: they would hold their devices for ever. Groups of
    pools that exist but cannot be read stay as they are.
    """
    live = (observed.ray_cluster or {}).get("spec", {}).get("workerGroupSpecs") or ()
    populated = {pod["metadata"]["labels"].get(NODE_GROUP_LABEL) for pod in observed.pods}
    unreadable = kept_node_groups(observed)
    retiring = [
        group if group["groupName"] in unreadable else group | {"replicas": 0, "minReplicas": 0}
        for group in live
        if group["groupName"] not in wanted and (group.get("replicas") or group["groupName"] in populated)
    ]
    kept = {node_group_of(pool) for pool in observed.pools if pool.name not in suspended}
    listed = {group["groupName"] for group in live} | wanted | unreadable | kept
    return [*retiring, *map(_without_pods, _unlisted(observed, listed))]


def _unlisted(observed: Observed, listed: set[str]) -> list[str]:
    """Return the node groups of pods that are not listed.

    KubeRay may create a pod while it has not seen yet that its group has left the spec. A pod that was
    relabelled is left alone.
    """
    labels = [pod["metadata"]["labels"] for pod in observed.pods_of(Component.WORKER)]
    groups = {str(each.get(NODE_GROUP_LABEL)): f"{each.get(POOL_LABEL)}-" for each in labels}
    return sorted(name for name, prefix in groups.items() if name not in listed and name.startswith(prefix))


def _without_pods(name: str) -> Manifest:
    """Return a node group for which KubeRay deletes all pods and creates none, so the template does not matter."""
    template = {"spec": {"containers": [{"name": Container.WORKER.value}]}}
    return {"groupName": name, **_count(0), "maxReplicas": 1, "rayStartParams": {}, "template": template}
