"""The bundles that ResourcePools of this Ray cluster have reserved, and those in which something runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from workergroups.announcements import reservations
from workergroups.attaching.pools import placed_nodes
from workergroups.for_verl.choice import BundleKey, OfferedNode
from workergroups.ray_private.cluster_state import live_nodes

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


@dataclass(frozen=True)
class Use:
    """What the last reports of Ray's nodes say about bundles."""

    used: frozenset[BundleKey]
    """In which something runs; also those that no node has reported."""
    is_complete: bool
    """Whether all are reported. A bundle that has just been reserved is not yet."""


def use_of(nodes: Iterable[OfferedNode]) -> Use:
    """Return in which of these nodes' bundles something runs."""
    available: dict[str, float] = {}
    for node in live_nodes():
        available.update(node.available)
    keys = [(node.placement_group, number) for node in nodes for number in range(len(node.bundles))]
    whole = {key: available.get(f"bundle_group_{key[1]}_{key[0]}") for key in keys}
    used = frozenset(key for key, amount in whole.items() if amount is None or amount < _WHOLE)
    return Use(used, None not in whole.values())
