"""Find the containers of a pool or group in which to run commands."""

from __future__ import annotations

from typing import NamedTuple

from workergroups_api.names import POOL_LABEL
from workergroups_api.vocabulary import Component, Container

from ..api_server.cluster import Cluster
from ..errors import NotFoundError
from ..objects import names
from ..objects.names import GROUP, Target
from ..ray_cluster.connection import RayConnection
from ..ray_cluster.heads import head_pod
from ..ray_cluster.ranks import choose, node_addresses, ranks_of
from ..waiting import Tell, silently


class PodContainer(NamedTuple):
    """A container in which commands can run."""

    pod: str
    name: str


def head(cluster: Cluster, target: Target) -> PodContainer:
    """Return the container of the Ray cluster's head, where drivers run."""
    return PodContainer(head_pod(cluster, names.ray_cluster(cluster, target)), Container.HEAD)


def ray_pods(cluster: Cluster, target: Target) -> list[PodContainer]:
    """Return the containers of the Ray cluster's head, and then of all nodes that run, whichever pool they are of."""
    name = names.ray_cluster(cluster, target)
    workers = names.running_pods(cluster, name, Component.WORKER)
    first = PodContainer(head_pod(cluster, name), Container.HEAD)
    return [first, *(PodContainer(pod["metadata"]["name"], Container.WORKER) for pod in workers)]


def agent(cluster: Cluster, target: Target) -> PodContainer:
    """Return the reporter's container in the pod of the Ray cluster's agent.

    Raises:
        NotFoundError: The agent is not running.
    """
    name = names.ray_cluster(cluster, target)
    for pod in names.running_pods(cluster, name, Component.AGENT):
        return PodContainer(pod["metadata"]["name"], Container.REPORTER)
    raise NotFoundError(f"the agent of Ray cluster {name} is not running: workergroups status {target.name} says why")


def nodes(cluster: Cluster, target: Target) -> list[PodContainer]:
    """Return the containers of the nodes of a pool, or of a group's pools.

    Raises:
        NotFoundError: No node is running.
    """
    pools = {target.name} if target.what != GROUP else set(names.pools_of(target))
    pods = names.running_pods(cluster, names.ray_cluster(cluster, target), Component.WORKER)
    found = sorted(pod["metadata"]["name"] for pod in pods if pod["metadata"]["labels"].get(POOL_LABEL) in pools)
    if not found:
        raise NotFoundError(f"no node of {target} is running: workergroups status {target.name} says why")
    return [PodContainer(pod, Container.WORKER) for pod in found]


def nodes_by_address(cluster: Cluster, ray_cluster_name: str) -> dict[str, PodContainer]:
    """Return the containers of all nodes of a Ray cluster that run, by the addresses of their pods."""
    pods = names.running_pods(cluster, ray_cluster_name, Component.WORKER)
    return {pod["status"].get("podIP", ""): PodContainer(pod["metadata"]["name"], Container.WORKER) for pod in pods}


def nodes_of_ranks(cluster: Cluster, group: Target, wanted: str, tell: Tell = silently) -> list[PodContainer]:
    """Return the containers of the nodes on which ranks of the group are, each once, in rank order.

    Raises:
        ClientError: The group has no such rank.
        NotFoundError: The pod of a rank is not running.
    """
    name = names.ray_cluster(cluster, group)
    with RayConnection(cluster, name, tell=tell) as ray:
        chosen = choose(ranks_of(ray.api, group), wanted)
        addresses = node_addresses(ray.api)
    by_address = nodes_by_address(cluster, name)
    found: dict[PodContainer, None] = {}
    for rank in chosen:
        pod = by_address.get(addresses.get(rank.node_id, ""))
        if pod is None:
            raise NotFoundError(
                f"the pod of rank {rank.rank} of {group} is not running (in Ray, the rank is {rank.state}): "
                f"workergroups status {group.name} says why"
            )
        found[pod] = None
    return list(found)
