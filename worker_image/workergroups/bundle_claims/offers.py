"""The bundles that ResourcePools of this Ray cluster have reserved, and those in which something runs."""

from __future__ import annotations

from collections.abc import Iterable

from workergroups import reservations
from workergroups.attaching_pools import placed_nodes
from workergroups.ray_private.cluster_state import live_nodes

from .choice import BundleKey, OfferedNode

# Of each bundle, Ray has this much of a resource with the bundle's name; whatever runs in it takes a little.
_WHOLE = 1000.0


def offered() -> list[OfferedNode]:
    """Return the nodes of all pools that have all of their bundles."""
    return [
        OfferedNode(
            pool=pool,
            index=node.name.index,
            placement_group=str(node.record["placement_group_id"]),
            bundles=tuple(node.record["bundles"][number] for number in sorted(node.record["bundles"])),
        )
        for pool in reservations.pools()
        for node in placed_nodes(pool) or ()
    ]


def in_use(nodes: Iterable[OfferedNode]) -> set[BundleKey]:
    """Return the bundles in which something runs, according to the last reports of Ray's nodes."""
    available: dict[str, float] = {}
    for node in live_nodes():
        available.update(node.available)
    keys = ((node.placement_group, number) for node in nodes for number in range(len(node.bundles)))
    return {(group, number) for group, number in keys if available.get(f"bundle_group_{number}_{group}", 0) < _WHOLE}
