"""Which pools may share a RayCluster: one Ray runs in it, so its version decides."""

from collections.abc import Iterable, Mapping

from workergroups_api.conditions import Explanation
from workergroups_api.resource_pool import ResourcePool


def refused_pools(pools: Iterable[ResourcePool], ray_version: str, default: str) -> Mapping[str, Explanation]:
    """Pools that ask for another Ray than the cluster's, by name. `default` is what a pool gets that names none."""
    return {
        pool.name: Explanation(
            "RayVersionConflict",
            f"the pool's Ray is {pool.spec.ray_version or default}, but cluster {pool.cluster} runs Ray {ray_version}: "
            "set spec.image and spec.rayVersion to that version's, or choose another spec.clusterName",
        )
        for pool in pools
        if (pool.spec.ray_version or default) != ray_version
    }
