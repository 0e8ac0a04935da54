"""Step one: the state of one RayCluster's world as a frozen value, read from the API server."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from workergroups_api import kube, names
from workergroups_api.kube import Kind, Kube, Manifest
from workergroups_api.model import ApiObject
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.membership import ClusterKey, Membership

Object = TypeVar("Object", bound=ApiObject)


@dataclass(frozen=True)
class Observed:
    """What is there. Pools and groups stand in the order of their creation."""

    key: ClusterKey
    pools: tuple[ResourcePool, ...] = ()
    groups: tuple[WorkerGroup, ...] = ()
    # Pool -> cluster, for the pools that the groups name and that are on another cluster.
    pools_elsewhere: Mapping[str, str] = field(default_factory=dict)
    # (kind, name) -> what the operator makes, as far as it exists.
    children: Mapping[tuple[str, str], Manifest] = field(default_factory=dict)
    pods: tuple[Manifest, ...] = ()

    def pods_of(self, component: str, pool: str | None = None) -> list[Manifest]:
        """Pods of a component that are not being deleted."""
        wanted = {names.COMPONENT_LABEL: component} | ({names.POOL_LABEL: pool} if pool else {})
        return [
            pod
            for pod in self.pods
            if wanted.items() <= pod["metadata"]["labels"].items() and "deletionTimestamp" not in pod["metadata"]
        ]


def child_names(cluster: str) -> dict[Kind, str]:
    """Everything that the operator makes for a cluster."""
    agent = names.agent_name(cluster)
    return {
        kube.SECRET: names.token_secret_name(cluster),
        kube.SERVICE_ACCOUNT: agent,
        kube.ROLE: agent,
        kube.ROLE_BINDING: agent,
        kube.CONFIG_MAP: names.plan_name(cluster),
        kube.RAY_CLUSTER: cluster,
        kube.DEPLOYMENT: agent,
    }


async def observe(client: Kube, membership: Membership, key: ClusterKey) -> Observed:
    """Read a cluster's pools, groups, children and pods."""
    pools, groups, children, pods = await asyncio.gather(
        _members(client, kube.RESOURCE_POOL, ResourcePool, key, membership.pools_of(key)),
        _members(client, kube.WORKER_GROUP, WorkerGroup, key, membership.groups_of(key)),
        _children(client, key),
        client.list(kube.POD, key.namespace, label_selector=f"{names.CLUSTER_LABEL}={key.name}"),
    )
    return Observed(
        key=key,
        pools=pools,
        groups=groups,
        pools_elsewhere=_elsewhere(membership, key, groups),
        children=children,
        pods=tuple(pods),
    )


def _elsewhere(membership: Membership, key: ClusterKey, groups: tuple[WorkerGroup, ...]) -> dict[str, str]:
    named = {ref.name for group in groups for ref in group.spec.pools}
    clusters = {pool: next(iter(membership.clusters.get((key.namespace, pool), ())), key.name) for pool in named}
    return {pool: cluster for pool, cluster in clusters.items() if cluster != key.name}


async def _members(
    client: Kube, kind: Kind, model: type[Object], key: ClusterKey, members: list[str]
) -> tuple[Object, ...]:
    found = await asyncio.gather(*(client.get(kind, key.namespace, name) for name in members))
    alive = [body for body in found if body is not None and "deletionTimestamp" not in body["metadata"]]
    alive.sort(key=lambda body: (body["metadata"]["creationTimestamp"], body["metadata"]["name"]))
    return tuple(model.model_validate(body) for body in alive)


async def _children(client: Kube, key: ClusterKey) -> dict[tuple[str, str], dict[str, Any]]:
    wanted = child_names(key.name)
    found = await asyncio.gather(*(client.get(kind, key.namespace, name) for kind, name in wanted.items()))
    return {
        (kind.kind, name): body for (kind, name), body in zip(wanted.items(), found, strict=True) if body is not None
    }
