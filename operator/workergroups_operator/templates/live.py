"""The templates in the live RayCluster, and whether pods of them have ever run."""

from workergroups_api.manifest import Manifest
from workergroups_api.names import ROLL_ANNOTATION
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import Component
from workergroups_operator.observed import Observed, node_group_of
from workergroups_operator.policy.admission import is_suspended
from workergroups_operator.policy.roll import has_begun
from workergroups_operator.templates.stamp import as_applied, digest_of, note


def live_head(observed: Observed) -> Manifest | None:
    """Return the head's template; None if there is none, or if somebody has changed it."""
    return as_applied((observed.ray_cluster or {}).get("spec", {}).get("headGroupSpec", {}).get("template"))


def live_nodes(observed: Observed, pool: ResourcePool) -> Manifest | None:
    """Return the template of a pool's nodes; None if there is none, or if somebody has changed it."""
    return as_applied((observed.live_node_group(node_group_of(pool)) or {}).get("template"))


def last_roll(observed: Observed, pool: ResourcePool) -> str | None:
    """Return the name of the pool's last roll. The status keeps it if somebody removes the node group."""
    live = live_nodes(observed, pool)
    return pool.status.roll if live is None else note(live, ROLL_ANNOTATION)


def has_run(observed: Observed, pool: ResourcePool) -> bool:
    """Return whether any of the pool's pods has ever run; while all are lost, the status tells it of the template."""
    live = live_nodes(observed, pool)
    # A suspended pool starts from its spec, and so does one whose cluster a queue has suspended.
    has_no_pods = (observed.live_node_group(node_group_of(pool)) or {}).get("replicas") == 0
    is_off = has_no_pods or is_suspended(observed.ray_cluster or {})
    is_noted = live is not None and not is_off and pool.status.template == digest_of(live)
    return is_noted or any(map(has_begun, observed.pods_of(Component.WORKER, node_group_of(pool))))


def has_head_run(observed: Observed) -> bool:
    """Return whether the head has ever run. Where nodes have run, it has, too."""
    heads = observed.pods_of(Component.HEAD)
    return any(map(has_begun, heads)) or any(has_run(observed, pool) for pool in observed.pools)
