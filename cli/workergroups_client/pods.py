"""Find the containers of a pool or group in which to run commands."""

from __future__ import annotations

from typing import NamedTuple

from workergroups_api.names import POOL_LABEL
from workergroups_api.vocabulary import Component, Container

from . import names
from .cluster import Cluster
from .connection import RayConnection
from .errors import NotFoundError
from .names import GROUP, Target
from .ranks import choose, node_addresses, ranks_of
from .waiting import Tell, silently


class PodContainer(NamedTuple):
    """A container in which commands can run."""

    pod: str
    name: str


def head(cluster: Cluster, target: Target) -> PodContainer:
    """Return the container of the Ray cluster's head, where drivers run."""
    return PodContainer(names.head_pod(cluster, names.ray_cluster(cluster, target)), Container.HEAD)


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


def node_of_rank(cluster: Cluster, group: Target, rank: str, tell: Tell = silently) -> PodContainer:
    """Return the container of the node on which a rank of the group is.

    Raises:
        NotFoundError: The pod of the rank is not running.
    """
    name = names.ray_cluster(cluster, group)
    with RayConnection(cluster, name, tell=tell) as ray:
        (found,) = choose(ranks_of(ray.api, group), rank)
        address = node_addresses(ray.api).get(found.node_id)
    for pod in names.running_pods(cluster, name, Component.WORKER):
        if address is not None and pod["status"].get("podIP") == address:
            return PodContainer(pod["metadata"]["name"], Container.WORKER)
    raise NotFoundError(
        f"the pod of rank {rank} of {group} is not running (in Ray, the rank is {found.state}): workergroups status "
        f"{group.name} says why"
    )
