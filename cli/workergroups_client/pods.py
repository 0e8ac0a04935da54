"""Which pods a name means, where something is to be run in them."""

from __future__ import annotations

from typing import NamedTuple

from workergroups_api.names import HEAD_CONTAINER, POOL_LABEL, REPORTER_CONTAINER, WORKER_CONTAINER

from . import names
from .cluster import Cluster
from .connection import RayConnection
from .errors import NotFoundError
from .names import GROUP, Target
from .ranks import choose, node_addresses, ranks_of
from .waiting import Tell, silently


class Container(NamedTuple):
    """Where something can be run in a pod."""

    pod: str
    name: str


def head(cluster: Cluster, target: Target) -> Container:
    """The head of the Ray cluster, where drivers run."""
    return Container(names.head_pod(cluster, names.ray_cluster(cluster, target)), HEAD_CONTAINER)


def agent(cluster: Cluster, target: Target) -> Container:
    """The agent of the Ray cluster, on Kubernetes' side.

    Raises:
        NotFoundError: None runs.
    """
    name = names.ray_cluster(cluster, target)
    for pod in names.running_pods(cluster, name, "agent"):
        return Container(pod["metadata"]["name"], REPORTER_CONTAINER)
    raise NotFoundError(f"no agent of the Ray cluster {name} runs: workergroups status {target.name} says why")


def nodes(cluster: Cluster, target: Target) -> list[Container]:
    """The nodes of a pool, or of a group's pools.

    Raises:
        NotFoundError: None runs.
    """
    pools = {target.name} if target.what != GROUP else set(names.pools_of(target))
    pods = names.running_pods(cluster, names.ray_cluster(cluster, target), "worker")
    found = sorted(pod["metadata"]["name"] for pod in pods if pod["metadata"]["labels"].get(POOL_LABEL) in pools)
    if not found:
        raise NotFoundError(f"no node of {target} runs: workergroups status {target.name} says why")
    return [Container(pod, WORKER_CONTAINER) for pod in found]


def node_of_rank(cluster: Cluster, group: Target, rank: str, tell: Tell = silently) -> Container:
    """The node on which a rank of the group is."""
    name = names.ray_cluster(cluster, group)
    with RayConnection(cluster, name, tell=tell) as ray:
        (found,) = choose(ranks_of(ray.api, group), rank)
        address = node_addresses(ray.api).get(found.node_id)
    for pod in names.running_pods(cluster, name, "worker"):
        if address is not None and pod["status"].get("podIP") == address:
            return Container(pod["metadata"]["name"], WORKER_CONTAINER)
    raise NotFoundError(f"rank {rank} of {group} has no pod that runs (Ray says {found.state})")
