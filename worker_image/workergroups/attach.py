"""``attach``: from a driver on a cluster, a handle on the ranks of one of its WorkerGroups."""

from __future__ import annotations

import time
from collections import defaultdict

import ray
from ray.actor import ActorHandle

from .errors import GroupNotFoundError
from .naming import NAMESPACE, RankName
from .single_controller.ray.cluster_state import actor_state
from .single_controller.ray.waiting import poll
from .single_controller.ray.worker_group import RayWorkerGroup


def attach(name: str, *, timeout: float = 60.0) -> RayWorkerGroup:
    """The WorkerGroup of that name, with the methods that its class registers.

    Connects to the cluster that this process is a driver of, unless it is connected. The class need not be importable
    here. Closing the returned group leaves the ranks alone.

    Args:
        name: The WorkerGroup's name.
        timeout: Seconds to wait until all ranks of the group are there, and rank 0's process is up.

    Raises:
        GroupNotFoundError: They are not; says which ranks are, or which groups there are instead.
        ConnectionError: There is no Ray cluster to connect to.
    """
    if not ray.is_initialized():
        ray.init(address="auto")
    deadline = time.monotonic() + timeout
    ranks = poll(lambda: _newest_complete(name), timeout=timeout)
    if ranks is None:
        raise GroupNotFoundError(_what_is_missing(name, timeout))
    handles = [ray.get_actor(str(rank), namespace=NAMESPACE) for rank in ranks]
    return RayWorkerGroup.from_detached(
        name_prefix=name,
        worker_names=[str(rank) for rank in ranks],
        worker_handles=handles,
        ray_wait_register_center_timeout=max(1.0, deadline - time.monotonic()),
    )


def _newest_complete(group: str) -> list[RankName] | None:
    """The ranks, in rank order, of the newest incarnation that has all of them."""
    complete = [ranks for ranks in _incarnations(group) if len(ranks) == ranks[0].world_size]
    if not complete:
        return None
    return max(complete, key=_age_key)


def _age_key(ranks: list[RankName]) -> tuple[float, int]:
    """Order incarnations by age: a group that was deleted and made again counts from 1 anew, so time goes first."""
    first = _handle(ranks[0])
    state = actor_state(first._actor_id.hex()) if first is not None else None
    return state.start_time if state else 0.0, ranks[0].incarnation


def _handle(rank: RankName) -> ActorHandle | None:
    try:
        return ray.get_actor(str(rank), namespace=NAMESPACE)
    except ValueError:
        return None  # it ended since it was listed


def _incarnations(group: str) -> list[list[RankName]]:
    """The ranks of the group that exist, each incarnation's in rank order."""
    found = defaultdict(list)
    for rank in _all_ranks():
        if rank.group == group:
            found[rank.uid, rank.incarnation].append(rank)
    return [sorted(ranks, key=lambda rank: rank.rank) for ranks in found.values()]


def _all_ranks() -> list[RankName]:
    """The ranks of all WorkerGroups on the cluster."""
    actors = ray.util.list_named_actors(all_namespaces=True)
    names = (RankName.parse(actor["name"]) for actor in actors if actor["namespace"] == NAMESPACE)
    return [name for name in names if name is not None]


def _what_is_missing(group: str, timeout: float) -> str:
    incarnations = _incarnations(group)
    if incarnations:
        newest = max(incarnations, key=lambda ranks: ranks[0].incarnation)
        return (
            f"after {timeout:g} s, {len(newest)} of {newest[0].world_size} ranks of group {group!r} are there "
            f"(incarnation {newest[0].incarnation}); see the WorkerGroup's conditions for what it waits for"
        )
    groups = sorted({rank.group for rank in _all_ranks()})
    known = ", ".join(map(repr, groups)) if groups else "none"
    return f"there is no group {group!r} on this cluster after {timeout:g} s; the groups here: {known}"
