"""``attach_pool``: get the bundles that are reserved for a ResourcePool, from a driver on its cluster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import ray
from ray.util import placement_group_table

from workergroups.announcements import reservations
from workergroups.errors import PoolNotFoundError
from workergroups.naming import PlacementName
from workergroups.processes import stack_dump
from workergroups.single_controller.ray.reserved_bundles import Record, pool_over
from workergroups.single_controller.ray.resource_pool import RayResourcePool
from workergroups.waiting import poll


def attach_pool(name: str, *, timeout: float = 60.0) -> RayResourcePool:
    """Return the ResourcePool of that name. Create groups on it, split it or merge it like a pool of the program's own.

    Connects to the cluster that this process is a driver of, unless it is connected. Closing the returned pool, or
    ending the program, leaves the reservation alone; groups that the program has created on it end with the program.
    WorkerGroups on the same bundles share their devices with these groups, up to the pool's ``maxColocateCount``.

    Args:
        name: The ResourcePool's name.
        timeout: Seconds to wait until all of its bundles are reserved.

    Raises:
        PoolNotFoundError: They are not in time; the message says how many nodes have theirs, or which pools exist.
        ConnectionError: There is no Ray cluster to connect to.
    """
    if not ray.is_initialized():
        ray.init(address="auto")
    stack_dump.enable_driver()
    placed = poll(lambda: placed_nodes(name), timeout=timeout, describe=partial(what_is_missing, name))
    if placed is None:
        raise PoolNotFoundError(what_is_missing(name, timeout))
    return pool_over(name, [(node.record, index) for node in placed for index in sorted(node.record["bundles"])])


@dataclass(frozen=True)
class PlacedNode:
    """The bundles of one node of a pool."""

    name: PlacementName
    record: Record


def placed_nodes(pool: str) -> list[PlacedNode] | None:
    """Return the pool's nodes in order; ``None`` unless all have their bundles."""
    reservation = reservations.current(pool)
    if reservation is None:
        return None
    placed = _nodes(pool, reservation.uid)
    # A pool that grows, or shrinks, has placement groups that it does not offer.
    nodes = sorted((node for node in placed if node.name.index < reservation.nodes), key=lambda node: node.name.index)
    return nodes if [node.name.index for node in nodes] == list(range(reservation.nodes)) else None


def _nodes(pool: str, uid: str) -> list[PlacedNode]:
    """Return the pool's nodes whose bundles are reserved."""
    named = ((PlacementName.parse(record["name"]), record) for record in _placement_groups())
    return [PlacedNode(name, record) for name, record in named if name and (name.pool, name.uid) == (pool, uid)]


def _placement_groups() -> list[Record]:
    return [record for record in placement_group_table().values() if record["state"] == "CREATED"]


def what_is_missing(pool: str, seconds: float) -> str:
    """Return why a pool is not there after that many seconds."""
    reservation = reservations.current(pool)
    if reservation is None:
        names = (PlacementName.parse(record["name"]) for record in _placement_groups())
        there = ", ".join(sorted({repr(name.pool) for name in names if name})) or "none"
        return (
            f"nothing is reserved for a pool {pool!r} on this cluster after {seconds:g} s (a pool with reservation: "
            f"None has no bundles); pools with bundles here: {there}"
        )
    reserved = sum(1 for node in _nodes(pool, reservation.uid) if node.name.index < reservation.nodes)
    return (
        f"after {seconds:g} s, {reserved} of {reservation.nodes} nodes of pool {pool!r} have their bundles; see the "
        "ResourcePool's conditions for what it waits for"
    )
