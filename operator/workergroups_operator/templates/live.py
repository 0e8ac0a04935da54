"""The templates in the live RayCluster, and whether pods of them have ever run."""

from workergroups_api.manifest import Manifest
from workergroups_api.names import ROLL_ANNOTATION
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import Component
from workergroups_operator.observed import Observed, node_group_of
from workergroups_operator.policy.queueing import is_held, is_suspended
from workergroups_operator.policy.roll import has_begun
from workergroups_operator.templates.stamp import as_applied, digest_of, note


def live_head(observed: Observed) -> Manifest | None:
    """Return the head's template; None if there is none, or if it was changed."""
    return as_applied(observed.live_head_template)


def admitted_head(observed: Observed) -> Manifest | None:
    """Return the head's template, with what a queue has added; None if it has no metadata."""
    return _with_metadata(observed.live_head_template)


def admitted_nodes(observed: Observed, pool: ResourcePool) -> Manifest | None:
    """Return the template of a pool's nodes, with what a queue has added; None if it has no metadata."""
    return _with_metadata((observed.live_node_group(node_group_of(pool)) or {}).get("template"))


def live_nodes(observed: Observed, pool: ResourcePool) -> Manifest | None:
    """Return the template of a pool's nodes; None if there is none, or if it was changed."""
    return as_applied((observed.live_node_group(node_group_of(pool)) or {}).get("template"))


def last_roll(observed: Observed, pool: ResourcePool) -> str | None:
    """Return the name of the pool's last roll. The status keeps the name if the node group is removed.

    A queue changes the templates when it admits them. Until it suspends the cluster, KubeRay creates pods from these.
    """
    live = live_nodes(observed, pool) or (admitted_nodes(observed, pool) if is_held(observed) else None)
    return pool.status.roll if live is None else note(live, ROLL_ANNOTATION)


def has_run(observed: Observed, pool: ResourcePool) -> bool:
    """Return whether any of the pool's pods has ever run. While all are lost, the status records that, by template."""
    live = live_nodes(observed, pool)
    is_noted = live is not None and pool.status.template == digest_of(live)
    return is_noted or any(map(has_begun, observed.pods_of(Component.WORKER, node_group_of(pool))))


def has_head_run(observed: Observed) -> bool:
    """Return whether a pod of the head has run, in a RayCluster that is not suspended."""
    cluster = observed.ray_cluster
    is_ending = cluster is not None and is_suspended(cluster)
    return not is_ending and any(map(has_begun, observed.pods_of(Component.HEAD)))


def _with_metadata(template: Manifest | None) -> Manifest | None:
    return template if template and template.get("metadata") else None
