"""Which pools a RayCluster cannot take: etcd limits its size, however many pools share it; and Ray uses TLS or not."""

import json
from collections.abc import Sequence
from typing import Any

from workergroups_api.conditions import Explanation
from workergroups_api.pod_settings import Setup
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import Reason
from workergroups_operator.observed import Observed, node_group_of

# etcd's limit is 1.5 MiB; the rest is for what Kubernetes and KubeRay add to the object.
MAX_BYTES = 1_300_000
# Of a user's pod template, so that it leaves the other pools room.
MAX_TEMPLATE_BYTES = 65536
# What a pod template has in addition to its pool's fields: the library's containers, probes, labels.
_POD_BYTES = 8_000
# What the head takes from the oldest pool.
_OF_HEAD = {"env", "env_from", "volumes", "image_pull_secrets", "head"}


def refused_pools(observed: Observed) -> dict[str, Explanation]:
    """Explain which pools the RayCluster cannot take, by the name of their node group."""
    return {**_with_large_template(observed), **over_budget(observed), **_without_tls(observed)}


def _with_large_template(observed: Observed) -> dict[str, Explanation]:
    sizes = {
        node_group_of(pool): _size(pool.spec.pod_template.to_json())
        for pool in observed.pools
        if pool.spec.pod_template is not None
    }
    return {
        name: Explanation(
            Reason.PODS_REFUSED,
            f"spec.podTemplate has {size} bytes as JSON, and may have {MAX_TEMPLATE_BYTES}: move what is large into a "
            "ConfigMap",
        )
        for name, size in sizes.items()
        if size > MAX_TEMPLATE_BYTES
    }


def over_budget(observed: Observed) -> dict[str, Explanation]:
    """Explain which pools do not fit. Those in the RayCluster keep their place."""
    if not observed.pools:
        return {}
    oldest = observed.pools[0].spec
    used = _template_size(oldest.model_dump(mode="json", include=_OF_HEAD, exclude_none=True), oldest.head_setup)
    refused: dict[str, Explanation] = {}
    for pool in _in_turn(observed):
        name = node_group_of(pool)
        fields = pool.spec.model_dump(mode="json", exclude={"head", "setup"}, exclude_none=True)
        size = _template_size(fields, pool.spec.node_setup)
        if used + size > MAX_BYTES:
            refused[name] = _explanation(pool, used + size)
            # If the RayCluster has its group, the group stays as it is.
            size = _size(observed.live_node_group(name) or {})
        used += size
    return refused


def _in_turn(observed: Observed) -> Sequence[ResourcePool]:
    """Return the pools that are in the RayCluster, then the others; the oldest first."""
    return sorted(observed.pools, key=lambda pool: observed.live_node_group(node_group_of(pool)) is None)


def _template_size(fields: Any, setup: Setup | None) -> int:
    """Return the size of a pod template from the fields of its pool.

    The container that runs the script is like Ray's. In the script, each `$` is doubled.
    """
    return _POD_BYTES + (_size(fields) if setup is None else 2 * (_size(fields) + _size(setup.script)))


def _size(part: Any) -> int:
    return len(json.dumps(part))


def _explanation(pool: ResourcePool, size: int) -> Explanation:
    return Explanation(
        Reason.CLUSTER_TOO_LARGE,
        f"with pool {pool.name} the RayCluster of cluster {pool.cluster} would have {size} bytes, and may have "
        f"{MAX_BYTES}: move what is large in spec.env, spec.setup or spec.podTemplate into a ConfigMap, or give the "
        "pool another spec.clusterName",
    )


def _without_tls(observed: Observed) -> dict[str, Explanation]:
    """Explain which pools ask for TLS on a cluster that began without it: they never get a Ray without it."""
    if observed.uses_tls:
        return {}
    return {
        node_group_of(pool): Explanation(
            Reason.TLS_CONFLICT,
            f"spec.tls is true, and RayCluster {pool.cluster} began without TLS: give the pool another "
            "spec.clusterName, or delete the other pools of this one first",
        )
        for pool in observed.pools
        if pool.spec.tls
    }
