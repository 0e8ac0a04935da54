"""Which nodes are about to go: each repeats its notice in Ray's control service (the GCS), under its pod's name."""

from __future__ import annotations

from collections.abc import Iterable

from workergroups.node import notice
from workergroups.node.notice import KV_NAMESPACE
from workergroups.ray_private import key_value_store, records
from workergroups.ray_private.cluster_state import actor_state
from workergroups.ray_private.gcs import Gcs


def first_of(actor_ids: Iterable[str]) -> notice.Notice | None:
    """Return the notice with the earliest deadline of the nodes of these actors; ``None`` if none has given any."""
    pods = set(key_value_store.keys(KV_NAMESPACE))
    if not pods:
        return None
    pod_of = {node.id: node.pod for node in map(records.node, Gcs.of_driver().nodes()) if node.is_alive}
    states = (actor_state(actor_id) for actor_id in actor_ids)
    leaving = pods.intersection(pod_of.get(state.node_id) for state in states if state is not None)
    found = (notice.read(key_value_store.get(KV_NAMESPACE, pod)) for pod in leaving)
    return min(filter(None, found), key=lambda each: each.deadline, default=None)


def forget(pod: str) -> None:
    """Remove the notice of a pod that is gone."""
    key_value_store.delete(KV_NAMESPACE, pod)
