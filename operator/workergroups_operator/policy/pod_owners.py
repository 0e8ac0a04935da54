"""Who owns the pods with a cluster's label, by the chain of owner UIDs, since anybody can copy labels.

`kubectl debug POD --copy-to=x --keep-labels` copies the labels but no owner. Kubernetes' garbage collector deletes a
pod whose owner does not exist, so a pod with an invented owner does not last.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from workergroups_api.manifest import RAY_CLUSTER, REPLICA_SET, Manifest, name_of
from workergroups_api.names import COMPONENT_LABEL
from workergroups_api.vocabulary import Component
from workergroups_operator.observed import NODE_GROUP_LABEL

# KubeRay's labels. KubeRay looks at nothing else, so that it counts copies too.
RAY_LABELS = _CLUSTER_LABEL, _NODE_TYPE_LABEL = "ray.io/cluster", "ray.io/node-type"


@dataclass(frozen=True)
class PodsByOwner:
    """The pods with a cluster's label."""

    # Pods of the present RayCluster and of the agent's present Deployment.
    own: tuple[Manifest, ...]
    # Pods of an earlier RayCluster of the same name.
    previous: tuple[Manifest, ...]
    # All others: copies, and pods that were created by hand.
    foreign: tuple[Manifest, ...]


def pods_by_owner(
    name: str,
    pods: Iterable[Manifest],
    ray_cluster: Manifest | None,
    deployment: Manifest | None,
    replica_sets: Iterable[Manifest],
) -> PodsByOwner:
    """Sort the pods of the cluster `name`. `replica_sets` are those that the agents' pods name as their controllers."""
    cluster, agent = _uid(ray_cluster), _uid(deployment)
    agents = {_uid(each) for each in replica_sets if agent is not None and _controller_uid(each) == agent}
    own, previous, foreign = [], [], []
    for pod in pods:
        labels = pod["metadata"].get("labels", {})
        component, owner = labels.get(COMPONENT_LABEL), controller(pod)
        uid = owner.get("uid")
        if component == Component.AGENT:
            is_own = uid in agents
        else:
            is_of_ray = labels.get(_NODE_TYPE_LABEL) == component or component == Component.IMAGE_CHECK
            is_own = cluster is not None and uid == cluster and is_of_ray
        if is_own:
            own.append(pod)
        elif cluster is None and (owner.get("kind"), owner.get("name")) == (RAY_CLUSTER.kind, name):
            previous.append(pod)
        else:
            foreign.append(pod)
    return PodsByOwner(tuple(own), tuple(previous), tuple(foreign))


def mistaken_heads(name: str, foreign: Iterable[Manifest]) -> list[str]:
    """Return the foreign pods that KubeRay takes for the head of the cluster `name`, so that it creates none."""
    return _labelled(foreign, {_CLUSTER_LABEL: name, _NODE_TYPE_LABEL: Component.HEAD})


def mistaken_nodes(name: str, group: str, foreign: Iterable[Manifest]) -> list[str]:
    """Return the foreign pods that KubeRay takes for nodes of a node group: it deletes a pod of the group for each.

    Pods of other controllers are left out, since these would recreate them.
    """
    bare = (pod for pod in foreign if controller(pod).get("kind") in (None, RAY_CLUSTER.kind))
    return _labelled(bare, {_CLUSTER_LABEL: name, NODE_GROUP_LABEL: group})


def _labelled(pods: Iterable[Manifest], labels: Mapping[str, str]) -> list[str]:
    return sorted(
        name_of(pod)
        for pod in pods
        if labels.items() <= pod["metadata"].get("labels", {}).items() and "deletionTimestamp" not in pod["metadata"]
    )


def controller(body: Manifest) -> Mapping[str, Any]:
    """Return the owner reference of the object's controller; empty if it has none."""
    owners = body["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller") is True), {})


def replica_sets_of(pods: Iterable[Manifest]) -> set[str]:
    """Return the names of the ReplicaSets that the agents' pods name as their controllers."""
    agents = (pod for pod in pods if pod["metadata"].get("labels", {}).get(COMPONENT_LABEL) == Component.AGENT)
    owners = (controller(pod) for pod in agents)
    return {str(owner["name"]) for owner in owners if owner.get("kind") == REPLICA_SET.kind}


def _controller_uid(body: Manifest) -> Any:
    return controller(body).get("uid")


def _uid(body: Manifest | None) -> str | None:
    return None if body is None else str(body["metadata"]["uid"])
