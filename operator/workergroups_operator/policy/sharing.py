"""Which pools may share a RayCluster: one Ray runs in it, so its oldest pool's version decides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workergroups_api.resource_pool import ResourcePool


@dataclass(frozen=True)
class Sharing:
    """Pools that are in, and for the others why not."""

    accepted: tuple[ResourcePool, ...]
    refused: Mapping[str, str]


def share(pools: Sequence[ResourcePool], default_ray_version: str) -> Sharing:
    """Accept the pools whose Ray version is that of the first."""
    if not pools:
        return Sharing((), {})
    version = pools[0].spec.ray_version or default_ray_version
    accepted, refused = [], {}
    for pool in pools:
        own = pool.spec.ray_version or default_ray_version
        if own == version:
            accepted.append(pool)
        else:
            refused[pool.name] = (
                f"spec.rayVersion is {own}, but cluster {pool.cluster} runs Ray {version} for pool {pools[0].name}: "
                "use that version, or another spec.cluster"
            )
    return Sharing(tuple(accepted), refused)
