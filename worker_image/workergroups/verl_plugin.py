"""verl's own resource pools get the bundles that ResourcePools have reserved. Importing this module changes verl.

verl imports it itself, as an entry point of ``verl.plugins`` (``VERL_USE_EXTERNAL_PLUGINS=none`` keeps it out). On a
Ray cluster without reserved bundles, and on a laptop, verl works as before. Different are:

- where its pools take their bundles from, and in which order;
- what its check of resources counts;
- that the storage of its batches skips nodes that are too small for it, such as the head;
- that its trainers save a checkpoint when a node of theirs is about to go;
- that a pool of this library's in verl's classes is split and merged, and places ranks, as in ours.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import wraps
from typing import Any

import ray
from verl.plugin.platform import get_platform
from verl.single_controller.ray import base

from workergroups.announcements import reservations
from workergroups.attaching.pools import what_is_missing
from workergroups.errors import InvalidTypeError, PlacementImpossibleError, PoolNotFoundError
from workergroups.for_verl import claims
from workergroups.for_verl.choice import BundleKey, OfferedNode, Share, choose, shortage
from workergroups.for_verl.notices import save_on_notice
from workergroups.for_verl.offers import offered, use_of
from workergroups.for_verl.storage_units import on_nodes_with_room
from workergroups.processes import stack_dump
from workergroups.ray_private.cluster_state import job_of_actor, live_nodes, placement_group_handle
from workergroups.single_controller.ray.part import Part, scheduling_strategy
from workergroups.single_controller.ray.resource_pool import (
    RayResourcePool,
    merge_resource_pool,
    split_resource_pool,
)
from workergroups.waiting import poll

# Ray's nodes report what is free with a delay, also after the end of what has run there.
_REPORT_SECONDS = 5.0
# For so long, a pool that has just lost a node may lack bundles, before verl is told so.
_PLACED_SECONDS = 60.0
# The actor to which all programs with a TransferQueue talk: its name, and its namespace in Ray.
_QUEUE = ("TransferQueueController", "transfer_queue")
# TransferQueue's module that starts storage units, and its function that says where.
_STORAGE = "transfer_queue.storage.bootstrap.simple_storage_bootstrap"
_WHERE = "get_node_round_robin_scheduling_strategies"


def _reserved_first(original: Any) -> Any:
    @wraps(original)
    def get_placement_groups(
        pool: Any, strategy: str = "STRICT_PACK", name: str | None = None, device_name: str = "cuda"
    ) -> Any:
        if pool.pgs is None and pool.use_gpu and (nodes := _offered()):
            wanted = _wanted(pool.max_colocate_count, pool.accelerator_type)
            shares = poll(lambda: _take(pool.name_prefix, pool.store, wanted, nodes), timeout=_REPORT_SECONDS)
            if shares is not None:
                pool.pgs = [_part(share) for share in shares]
            elif not _is_free_elsewhere(pool.store, wanted):
                raise PlacementImpossibleError(_sentence({pool.name_prefix: pool.store}, wanted, nodes))
        return original(pool, strategy, name, device_name)

    return get_placement_groups


def _in_pools_order(original: Any) -> Any:
    @wraps(original)
    def sort_placement_group_by_node_ip(pgs: list[Any]) -> list[Any]:
        return list(pgs) if all(isinstance(each, Part) for each in pgs) else list(original(pgs))

    return sort_placement_group_by_node_ip


def _also_ours(original: Any, ours: Any) -> Any:
    """Return verl's function for pools of verl's, and ours for ours."""

    @wraps(original)
    def split_or_merge(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        pools = [each for each in given if isinstance(each, (RayResourcePool, base.RayResourcePool))]
        kinds = {isinstance(each, RayResourcePool) for each in pools}
        if len(kinds) > 1:
            raise InvalidTypeError("verl's RayResourcePool and workergroups' cannot be merged: create both with verl's")
        return (ours if kinds == {True} else original)(*args, **kwargs)

    return split_or_merge


def _counting_reserved(original: Any) -> Any:
    @wraps(original)
    def _check_resource_available(manager: Any) -> None:
        _refuse_another_jobs_queue()
        save_on_notice()
        nodes, wanted, specs = _offered(), _wanted(manager.max_colocate_count), manager.resource_pool_spec
        if not nodes:
            original(manager)
        elif not poll(lambda: _fit(specs, wanted, nodes), timeout=_REPORT_SECONDS):
            try:
                original(manager)
            except ValueError:
                raise ValueError(_sentence(specs, wanted, nodes)) from None

    return _check_resource_available


def _refuse_another_jobs_queue() -> None:
    """Raise if this program's batches go to the TransferQueue of another job.

    The queue has a fixed name, and a program that starts it later joins it without a word.
    """
    interface = sys.modules.get("transfer_queue.interface")
    if interface is None or getattr(interface, "_TQ_CONTROLLER", None) is None:
        return
    job = job_of_actor(*_QUEUE)
    if job not in (None, str(ray.get_runtime_context().get_job_id())):
        raise ValueError(
            f"job {job} of this Ray cluster has a TransferQueue, which has a fixed name, so the batches of both jobs "
            "would mix: wait until that job has ended, or run this one on a ResourcePool with another clusterName"
        )


def _offered() -> list[OfferedNode]:
    """Return what pools have reserved: nothing if there are no pools that reserve.

    Raises:
        PoolNotFoundError: There are, and none has all of its bundles.
    """
    pools = reservations.pools()
    if not pools:
        return []
    nodes = poll(offered, timeout=_PLACED_SECONDS)
    if nodes is None:
        raise PoolNotFoundError(what_is_missing(pools[0], _PLACED_SECONDS))
    return nodes


def _wanted(max_colocate_count: int, accelerator_type: str | None = None) -> dict[str, float]:
    """Return what verl asks for in each bundle."""
    more = {} if accelerator_type is None else {accelerator_type: 1e-4}
    return {"CPU": max_colocate_count, get_platform().ray_resource_name(): 1} | more


def _taken(nodes: Sequence[OfferedNode]) -> set[BundleKey]:
    return claims.taken() | use_of(nodes).used


def _take(
    name: str, process_on_nodes: Sequence[int], wanted: Mapping[str, float], nodes: Sequence[OfferedNode]
) -> list[Share] | None:
    use = use_of(nodes)
    shares = choose(name, process_on_nodes, wanted, nodes, claims.taken() | use.used) if use.is_complete else None
    return shares if shares and claims.claim(key for share in shares for key in share.keys) else None


def _fit(specs: Mapping[str, Sequence[int]], wanted: Mapping[str, float], nodes: Sequence[OfferedNode]) -> bool:
    """Return whether all of these pools fit together."""
    return _first_misfit(specs, wanted, nodes, _taken(nodes)) is None


def _first_misfit(
    specs: Mapping[str, Sequence[int]],
    wanted: Mapping[str, float],
    nodes: Sequence[OfferedNode],
    taken: set[BundleKey],
) -> str | None:
    """Return the first pool that has no room beside those before it, which are added to what is taken."""
    for name, process_on_nodes in specs.items():
        shares = choose(name, process_on_nodes, wanted, nodes, taken)
        if shares is None:
            return name
        taken.update(key for share in shares for key in share.keys)
    return None


def _sentence(specs: Mapping[str, Sequence[int]], wanted: Mapping[str, float], nodes: Sequence[OfferedNode]) -> str:
    taken = _taken(nodes)
    name = _first_misfit(specs, wanted, nodes, taken)
    if name is None:
        return "the reserved bundles have become free only now: start the program again"
    return (
        f"{shortage(name, specs[name], wanted, nodes, taken)}. Enlarge the ResourcePool, end what runs on it "
        "(`workergroups status`), or ask verl for less"
    )


def _is_free_elsewhere(process_on_nodes: Sequence[int], wanted: Mapping[str, float]) -> bool:
    """Return whether nodes of which nothing is reserved have enough devices, as verl counts them."""
    device = get_platform().ray_resource_name()
    return sum(node.available.get(device, 0) for node in live_nodes()) >= sum(process_on_nodes) * wanted[device]


def _part(share: Share) -> Part:
    bundles = [dict(bundle) for bundle in share.node.bundles]
    whole = placement_group_handle(share.node.placement_group, bundles)
    return Part(whole, range(share.first, share.first + share.count))


def _install() -> None:
    base.PlacementGroupSchedulingStrategy = scheduling_strategy
    base.RayResourcePool.get_placement_groups = _reserved_first(base.RayResourcePool.get_placement_groups)
    base.sort_placement_group_by_node_ip = _in_pools_order(base.sort_placement_group_by_node_ip)
    base.split_resource_pool = _also_ours(base.split_resource_pool, split_resource_pool)
    base.merge_resource_pool = _also_ours(base.merge_resource_pool, merge_resource_pool)
    manager = base.ResourcePoolManager
    manager._check_resource_available = _counting_reserved(manager._check_resource_available)
    stack_dump.enable_driver()
    storage = sys.modules.get(_STORAGE)  # verl has imported it, if it is installed
    if hasattr(storage, _WHERE):
        setattr(storage, _WHERE, on_nodes_with_room(getattr(storage, _WHERE)))


_install()
