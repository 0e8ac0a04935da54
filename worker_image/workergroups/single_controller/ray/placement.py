"""Place a pool's bundles: one placement group per node, all or none, within a deadline."""

from __future__ import annotations

import contextlib
import ipaddress
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ray.exceptions import GetTimeoutError, RaySystemError
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group

from workergroups.errors import PlacementImpossibleError, PlacementTimeoutError
from workergroups.ray_private.cluster_state import is_placed, is_removed, live_nodes, node_of_bundles
from workergroups.ray_private.process import has_started_ray
from workergroups.waiting import not_ready, wait_for_end

from . import progress, shortage

NOTHING: Mapping[str, Sequence[PlacementGroup]] = {}
_WAY_OUT = (
    "Free or add resources, or ask for fewer processes or a smaller max_colocate_count (each bundle reserves that "
    "many CPUs)."
)


def place(
    owner: str,
    name: str,
    process_on_nodes: Sequence[int],
    bundle: Mapping[str, float],
    *,
    strategy: str,
    detached: bool,
    timeout: float,
    held: Mapping[str, Sequence[PlacementGroup]] = NOTHING,
) -> list[PlacementGroup]:
    """Reserve ``process_on_nodes[i]`` bundles on node i; placement group i in the returned list holds them.

    Groups of equal size are ordered by their nodes' addresses, as numbers, so that ranks keep their nodes when a pool
    is recreated on the same cluster.

    Args:
        owner: The pool, for messages.
        name: The groups are called ``name`` with 0, 1, ... appended.
        process_on_nodes: Bundles per group.
        bundle: Resources of each bundle.
        strategy: Ray's placement strategy within a group.
        detached: Whether the groups outlive the driver.
        timeout: Seconds until all groups must be placed.
        held: Placement groups, by the name of their owner, for whose end there is no waiting.

    Raises:
        PlacementTimeoutError: Some groups were not placed in time. All are removed again.
        PlacementImpossibleError: They never would be, or not as long as the groups in ``held`` exist.
        ValueError: A placement group of one of the names exists.
    """
    _refuse_impossible(owner, process_on_nodes, bundle, strategy, held)
    groups: dict[int, PlacementGroup] = {}
    started = time.monotonic()
    try:
        # The largest groups come first: a smaller group might take the only node for a larger one, and the pool would
        # wait for itself.
        for size in sorted(set(process_on_nodes), reverse=True):
            of_size = [index for index, count in enumerate(process_on_nodes) if count == size]
            for index in of_size:
                groups[index] = _create(f"{name}{index}", [dict(bundle)] * size, strategy, detached)
            _wait_placed(owner, [groups[index] for index in of_size], strategy, started, timeout)
    except BaseException:
        # Groups left behind would hold resources, and the next try could not use their names.
        remove(list(groups.values()))
        raise
    return _order_by_node([groups[index] for index in range(len(groups))])


def fitting_cpus(process_on_nodes: Sequence[int], bundle: Mapping[str, float], strategy: str) -> int | None:
    """Return how many of its CPUs each bundle can have: all, if something may add nodes; ``None`` if none can fit."""
    if not has_started_ray():
        return int(bundle["CPU"])
    return shortage.fitting_cpus(process_on_nodes, bundle, live_nodes(), one_node=strategy == "STRICT_PACK")


def remove(groups: Sequence[PlacementGroup]) -> None:
    """Remove placement groups and the actors in them; return when the groups are gone."""
    for group in groups:
        remove_placement_group(group)
    wait_for_end(lambda: all(is_removed(group) for group in groups), what="the pool's placement groups")


def _refuse_impossible(
    owner: str,
    process_on_nodes: Sequence[int],
    bundle: Mapping[str, float],
    strategy: str,
    held: Mapping[str, Sequence[PlacementGroup]],
) -> None:
    """Raise instead of waiting if only more nodes would help, or the end of groups that do not end."""
    if not has_started_ray():
        return
    nodes, one_node = live_nodes(), strategy == "STRICT_PACK"
    why = shortage.explain_impossible(process_on_nodes, bundle, nodes, one_node=one_node)
    if why is not None:
        absent = [resource for resource in bundle if not any(node.total.get(resource) for node in nodes)]
        raise PlacementImpossibleError(
            f"{owner} can never be placed on the Ray that this program has started: {why}. "
            f"{_without(absent) if absent else _WAY_OUT}"
        )
    taken = _taken(group for groups in held.values() for group in groups)
    why = shortage.explain_impossible(process_on_nodes, bundle, nodes, one_node=one_node, taken=taken)
    if why is not None:
        raise PlacementImpossibleError(
            f"{owner} cannot be placed as long as this program holds {' and '.join(held)}: {why}. Close what is "
            "not needed any more (close(), or a `with` block), or create the groups on one pool. To wait until another "
            "thread closes it, give the pool a timeout."
        )


def _taken(groups: Iterable[PlacementGroup]) -> Mapping[str, Mapping[str, float]]:
    """Return what bundles take, by node."""
    taken: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for group in filter(is_placed, groups):
        for index, node_id in node_of_bundles(group).items():
            taken[node_id].update(group.bundle_specs[index])
    return taken


def _without(absent: Sequence[str]) -> str:
    return f"This Ray has no {' and no '.join(absent)}: for a pool of processes without devices, set use_gpu=False."


def _create(name: str, bundles: list[dict[str, float]], strategy: str, detached: bool) -> PlacementGroup:
    try:
        return placement_group(bundles, strategy=strategy, name=name, lifetime="detached" if detached else None)
    except RaySystemError as error:
        if "already exists" not in str(error):
            raise
        raise ValueError(
            f"a placement group named {name!r} exists: another pool of this shape holds that name_prefix; "
            "close that pool, or give this one another name_prefix"
        ) from error


def _wait_placed(owner: str, groups: list[PlacementGroup], strategy: str, started: float, timeout: float) -> None:
    """Wait for groups of one size until ``timeout`` seconds after ``started``."""
    ready = [group.ready() for group in groups]
    bundles = groups[0].bundle_specs

    def describe() -> str:
        placed = len(ready) - len(not_ready(ready))
        return f"{owner}: {placed} of {len(ready)} placement groups of {len(bundles)} bundles are placed"

    with contextlib.suppress(GetTimeoutError):
        progress.get(ready, timeout=max(0.0, started + timeout - time.monotonic()), describe=describe)
    pending = not_ready(ready)
    if not pending:
        return
    # The groups are alike, so they lack the same resources.
    why = shortage.explain_shortage(bundles, live_nodes(), one_node=strategy == "STRICT_PACK")
    raise PlacementTimeoutError(
        f"{owner} was not placed within {timeout:g} s: {len(pending)} of {len(groups)} placement groups of "
        f"{len(bundles)} bundles of {bundles[0]} ({strategy}) have no place. {why}. {_WAY_OUT}"
    )


def _order_by_node(groups: list[PlacementGroup]) -> list[PlacementGroup]:
    """Sort groups of the same size by node address: group i must keep its ``process_on_nodes[i]`` bundles."""
    addresses = {node.node_id: node.address for node in live_nodes()}
    by_size = defaultdict(list)
    for group in groups:
        by_size[group.bundle_count].append(group)
    for same_size in by_size.values():
        same_size.sort(key=lambda group: _address_key(addresses.get(node_of_bundles(group)[0], "")))
    return [by_size[group.bundle_count].pop(0) for group in groups]


def _address_key(address: str) -> tuple[int, int, str]:
    """Return what orders addresses as numbers (.7 before .69), IPv4 before IPv6, and names last."""
    try:
        parsed = ipaddress.ip_address(address.strip("[]"))
    except ValueError:
        return 9, 0, address
    return parsed.version, int(parsed), ""
