"""Find the Ray nodes of a pool by their numbers."""

from __future__ import annotations

from workergroups.naming import PlacementName
from workergroups_api.manifest import POD

from ..api_server.cluster import Cluster
from ..errors import ClientError, NotFoundError, NotRunningError
from ..objects.names import Target
from ..objects.reading import pool_spec
from ..ray_cluster.ranks import node_addresses, rows
from ..ray_cluster.ray_api import RayApi
from .pods import nodes


def node_id(cluster: Cluster, ray: RayApi, pool: Target, number: int) -> str:
    """Return Ray's id of a node of the pool.

    Nodes have the numbers of their reservations, which ranks follow. In a pool that reserves nothing, they are numbered
    by the names of their pods.

    Raises:
        NotFoundError: There is no such node; the message lists the existing ones.
    """
    ids = _reserved(ray, pool) or dict(enumerate(_joined(cluster, ray, pool)))
    if number not in ids:
        if not ids:
            raise NotRunningError(f"no node of {pool} has joined Ray: workergroups status {pool.name} says why")
        if number < pool_spec(pool).nodes:
            raise NotRunningError(f"node {number} of {pool} is not in Ray: workergroups status {pool.name} says why")
        raise NotFoundError(f"{pool} has no node {number} in Ray: choose from {', '.join(map(str, sorted(ids)))}")
    return ids[number]


def _reserved(ray: RayApi, pool: Target) -> dict[int, str]:
    found = {}
    for placed in rows(ray, "/api/v0/placement_groups"):
        name = PlacementName.parse(placed["name"] or "")
        if name and name.uid == pool.uid and placed["state"] == "CREATED":
            found[name.index] = name.node_id
    return found


def _joined(cluster: Cluster, ray: RayApi, pool: Target) -> list[str]:
    by_address = {address: node for node, address in node_addresses(ray).items()}
    try:
        pods = [cluster.get(POD, container.pod) or {} for container in nodes(cluster, pool)]
    except ClientError:
        return []
    addresses = [pod.get("status", {}).get("podIP") for pod in pods]
    return [by_address[address] for address in addresses if address in by_address]
