"""Where head and agent run: where the pool's spec says, and otherwise where the pool's nodes may run.

They inherit the toleration for nodes with devices, since a cluster may have no other nodes. If there are others, head
and agent prefer them.
"""

from typing import Any

from workergroups_api.pod_settings import Placement
from workergroups_api.resource_pool import PRODUCT_LABELS, ResourcePool
from workergroups_operator.templates.pod_parts import given, pull_secrets, tolerations


def placement(pool: ResourcePool, own: Placement) -> dict[str, Any]:
    """Return the fields of a pod's spec; a field that `own` leaves out is the pool's."""
    selector = pool.spec.node_selector if own.node_selector is None else own.node_selector
    theirs = tolerations(pool) if own.tolerations is None else [each.to_json() for each in own.tolerations]
    priority = pool.spec.priority_class_name if own.priority_class_name is None else own.priority_class_name
    return {
        **_pull_secrets(pool, own),
        **given("nodeSelector", selector),
        **given("tolerations", theirs),
        **given("priorityClassName", priority),
        **given("affinity", _away_from_devices(pool)),
    }


def _pull_secrets(pool: ResourcePool, own: Placement) -> dict[str, Any]:
    if own.image_pull_secrets is None:
        return pull_secrets(pool)
    return given("imagePullSecrets", [secret.to_json() for secret in own.image_pull_secrets])


def _away_from_devices(pool: ResourcePool) -> dict[str, Any]:
    vendor = pool.spec.accelerator.vendor
    if vendor not in PRODUCT_LABELS:
        return {}
    without = {"matchExpressions": [{"key": PRODUCT_LABELS[vendor], "operator": "DoesNotExist"}]}
    return {
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": without}]}
    }
