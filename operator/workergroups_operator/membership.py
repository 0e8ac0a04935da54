"""Which RayCluster a pool or a group belongs to, from kopf's indices. Names only; the objects are read when needed."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

Value = TypeVar("Value")
Index = Mapping[tuple[str, str], Collection[Value]]


@dataclass(frozen=True)
class ClusterKey:
    """A RayCluster, the unit of reconciliation: its pools and groups share one."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def cluster_of_pool(name: str, spec: Mapping[str, Any]) -> str:
    """By default each pool has a cluster of its own name."""
    return str(spec.get("cluster") or name)


def pools_of_group(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """The pools that a group names, in order."""
    return tuple(str(ref["name"]) for ref in spec.get("pools", ()))


@dataclass(frozen=True)
class Membership:
    """A view of two indices: (namespace, pool) -> cluster, and (namespace, group) -> names of its pools."""

    clusters: Index[str]
    pools: Index[tuple[str, ...]]

    def pools_of(self, key: ClusterKey) -> list[str]:
        """Names of the pools on a cluster."""
        return sorted(
            pool
            for (namespace, pool), cluster in _entries(self.clusters)
            if (namespace, cluster) == (key.namespace, key.name)
        )

    def groups_of(self, key: ClusterKey) -> list[str]:
        """Names of the groups that are a cluster's to care for."""
        return sorted(
            group
            for (namespace, group), pools in _entries(self.pools)
            if namespace == key.namespace and self.home(namespace, pools) == key
        )

    def home(self, namespace: str, pools: tuple[str, ...]) -> ClusterKey:
        """The cluster of a group's first pool; a pool that does not exist counts as a cluster of its name."""
        first = pools[0]
        (cluster,) = self.clusters.get((namespace, first), ()) or (first,)
        return ClusterKey(namespace, cluster)

    def woken_by_pool(self, namespace: str, pool: str, spec: Mapping[str, Any]) -> set[ClusterKey]:
        """Clusters to look at when a pool came, changed or went: its own, and those of the groups that name it."""
        homes = {
            self.home(namespace, pools)
            for (group_namespace, _), pools in _entries(self.pools)
            if group_namespace == namespace and pool in pools
        }
        return {ClusterKey(namespace, cluster_of_pool(pool, spec)), *homes}


def _entries(index: Index[Value]) -> Iterator[tuple[tuple[str, str], Value]]:
    for key, values in index.items():
        for value in values:
            yield key, value
