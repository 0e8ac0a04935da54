"""The ranks of WorkerGroups by their names in Ray, from a process that is connected to it."""

from __future__ import annotations

import ray
from ray.actor import ActorHandle
from ray.exceptions import GetTimeoutError

from workergroups.naming import NAMESPACE, RankName


def own() -> RankName | None:
    """Return the name of the rank that this process is; ``None`` if it is none of a WorkerGroup."""
    name = ray.get_runtime_context().get_actor_name() if ray.is_initialized() else None
    return RankName.parse(name or "")


def existing() -> list[RankName]:
    """Return the ranks of all WorkerGroups on the cluster."""
    actors = ray.util.list_named_actors(all_namespaces=True)
    names = (RankName.parse(actor["name"]) for actor in actors if actor["namespace"] == NAMESPACE)
    return [name for name in names if name is not None]


def handle(rank: RankName) -> ActorHandle | None:
    """Return the rank's handle; ``None`` if it has ended, or the GCS does not answer in time."""
    try:
        return ray.get_actor(str(rank), namespace=NAMESPACE)
    except (ValueError, GetTimeoutError):
        return None
