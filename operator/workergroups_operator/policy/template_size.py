"""How large a pod template may be: all pools of a cluster share one RayCluster, whose size etcd limits."""

import json
from collections.abc import Iterable

from workergroups_api.conditions import Explanation
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import Reason
from workergroups_operator.observed import node_group_of

MAX_BYTES = 65536


def too_large(pools: Iterable[ResourcePool]) -> dict[str, Explanation]:
    """Explain which templates would leave the others no room, by the name of their node group."""
    sizes = {
        node_group_of(pool): len(json.dumps(pool.spec.pod_template.to_json()))
        for pool in pools
        if pool.spec.pod_template is not None
    }
    return {
        name: Explanation(
            Reason.PODS_REFUSED,
            f"spec.podTemplate has {size} bytes as JSON, and may have {MAX_BYTES}: move what is large into a ConfigMap",
        )
        for name, size in sizes.items()
        if size > MAX_BYTES
    }
