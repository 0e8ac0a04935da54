"""Which RayCluster a pool or a group belongs to, from kopf's indices.

The indices are a hint: they may still hold an object that is gone, next to the one that has its name now. The operator
reads the objects that they name before it concludes anything.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from workergroups_api.references import cluster_of_pool

Value = TypeVar("Value")
Index = Mapping[tuple[str, str], Collection[Value]]


@dataclass(frozen=True)
class ClusterKey:
    """A RayCluster, the unit of reconciliation: its pools and groups share one."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Membership:
    """Three indices by namespace and name, so that the cost of a look-up does not grow with the number of objects."""

    # A pool -> its cluster.
    clusters: Index[str]
    # A cluster -> its pools.
    pools: Index[str]
    # A pool -> the groups that name it, each with the names of all its pools.
    groups: Index[tuple[str, tuple[str, ...]]]

    def has_members(self, key: ClusterKey) -> bool:
        """Return whether any pool or group may belong to a cluster."""
        return bool(self.pools_of(key) or self.groups_of(key))

    def pools_of(self, key: ClusterKey) -> list[str]:
        """Return the names of the pools that may be on a cluster."""
        return sorted(set(self.pools.get((key.namespace, key.name), ())))

    def groups_of(self, key: ClusterKey) -> list[str]:
        """Return the names of the groups that may belong to a cluster."""
        return sorted(
            {
                group
                for pool in {*self.pools_of(key), key.name}
                for group, pools in self.groups.get((key.namespace, pool), ())
                if key in self.owning_clusters(key.namespace, pools)
            }
        )

    def owning_clusters(self, namespace: str, pools: tuple[str, ...]) -> set[ClusterKey]:
        """Return the cluster of a group's first pool; a pool that does not exist counts as a cluster of its name."""
        first = pools[0]
        return {ClusterKey(namespace, cluster) for cluster in self.clusters.get((namespace, first), ()) or (first,)}

    def enqueued_by_pool(self, namespace: str, pool: str, spec: Mapping[str, Any]) -> set[ClusterKey]:
        """Return the clusters that an event of a pool concerns: its own, and those of the groups that name it."""
        owners = {
            owner
            for _, pools in self.groups.get((namespace, pool), ())
            for owner in self.owning_clusters(namespace, pools)
        }
        return {ClusterKey(namespace, cluster_of_pool(pool, spec)), *owners}
