"""Step two: build the pod templates of a cluster, once in a turn; the later steps only read them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from workergroups_api.conditions import Explanation
from workergroups_api.manifest import Manifest
from workergroups_api.resource_pool import ResourcePool
from workergroups_operator.membership import ClusterKey
from workergroups_operator.observed import Observed, node_group_of
from workergroups_operator.policy.cluster_size import without_room
from workergroups_operator.policy.images import Images, images_of
from workergroups_operator.policy.template_size import too_large
from workergroups_operator.settings import Settings
from workergroups_operator.templates.pods import head_template, worker_template


@dataclass(frozen=True)
class Templates:
    """The pod templates of one cluster, and the images in them."""

    images: Images
    # Empty if the cluster has no pool.
    head: Manifest = field(default_factory=dict)
    # By the name of the pool's node group.
    workers: Mapping[str, Manifest] = field(default_factory=dict)
    # Why the RayCluster has no room for a pool, by node group: the operator need not ask the API server about its pods.
    too_large: Mapping[str, Explanation] = field(default_factory=dict)

    def of(self, pool: ResourcePool) -> Manifest:
        """Return the template of the pool's nodes."""
        return self.workers[node_group_of(pool)]


def templates_of(observed: Observed, settings: Settings) -> Templates:
    """Return the templates of a cluster; the oldest pool shapes the head."""
    images, pools = images_of(observed, settings), observed.pools
    return Templates(
        images=images,
        head=head_template(observed.key, images, pools[0]) if pools else {},
        workers={node_group_of(pool): worker_template(observed.key, pool, images) for pool in pools},
        too_large={**too_large(pools), **without_room(observed)},
    )


def alone(templates: Templates, key: ClusterKey, pool: ResourcePool) -> Templates:
    """Return the templates of the same cluster if it had no other pool."""
    return replace(
        templates,
        head=head_template(key, templates.images, pool),
        workers={node_group_of(pool): templates.of(pool)},
        too_large={},
    )
