"""Check that ranks with several devices each can tell which: all devices of their nodes must be in one pool."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from ray.util.placement_group import PlacementGroup, placement_group_table

from workergroups.ray_private.cluster_state import live_nodes


def check_whole_nodes(placement_groups: Iterable[PlacementGroup], resource: str, per_bundle: int) -> None:
    """Refuse placement groups for which `visible_devices.bundle_devices` would return wrong devices.

    Args:
        placement_groups: Those that hold the ranks' bundles. Unplaced ones are not checked.
        resource: Ray's name of the devices.
        per_bundle: How many of them each bundle should have.

    Raises:
        ValueError: A bundle has another number of devices, or a node has devices that are not in the group's bundles.
    """
    tables = placement_group_table()
    totals = {node.node_id: node.total.get(resource, 0) for node in live_nodes()}
    for group_id in dict.fromkeys(group.id.hex() for group in placement_groups):
        _check(tables.get(group_id, {}), totals, resource, per_bundle)


def _check(table: Mapping[str, Any], totals: Mapping[str, float], resource: str, per_bundle: int) -> None:
    held: dict[str, float] = defaultdict(float)
    for index, node in table.get("bundles_to_node_id", {}).items():
        amount = table["bundles"][index].get(resource, 0)
        if amount != per_bundle:
            raise ValueError(f"bundle {index} of {table['name']!r} has {amount:g} {resource}, not {per_bundle}")
        held[node] += amount
    for node, amount in held.items():
        if node in totals and totals[node] != amount:
            raise ValueError(
                f"node {node} has {totals[node]:g} {resource}, of which {table['name']!r} holds {amount:g}: ranks with "
                f"{per_bundle} each need nodes of their own, since Ray tells a rank only one of its devices"
            )
