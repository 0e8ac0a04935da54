"""Why bundles do not fit on a cluster: which resource is short, how much is needed and how much there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from .cluster_state import NodeResources


def explain_shortage(bundles: Sequence[Mapping[str, float]], nodes: Sequence[NodeResources], *, one_node: bool) -> str:
    """Name the resources that keep ``bundles`` from being placed.

    Args:
        bundles: Resources per bundle, such as ``{"CPU": 10, "GPU": 1}``.
        nodes: The live nodes.
        one_node: Whether one node must hold all bundles (STRICT_PACK), or all nodes together.

    Returns:
        One clause per short resource, with what is required, free and there in all.
    """
    required = Counter[str]()
    for bundle in bundles:
        required.update(bundle)
    where = "on one node" if one_node else "on all nodes together"
    short = []
    for resource, amount in required.items():
        total, available = _best(resource, nodes) if one_node else _sum(resource, nodes)
        if available < amount:
            holder = "the best node" if one_node else "the cluster"
            short.append(f"{resource}: {amount:g} required {where}, {holder} has {available:g} free of {total:g}")
    if short:
        return "; ".join(short)
    wanted = ", ".join(f"{amount:g} {resource}" for resource, amount in required.items())
    return f"each resource alone would fit, but no node has all of it free at once: {wanted} {where}"


def _best(resource: str, nodes: Iterable[NodeResources]) -> tuple[float, float]:
    """(total, available) of the node with the most of it free."""
    return max(
        ((node.total.get(resource, 0), node.available.get(resource, 0)) for node in nodes),
        key=lambda amounts: (amounts[1], amounts[0]),
        default=(0, 0),
    )


def _sum(resource: str, nodes: Sequence[NodeResources]) -> tuple[float, float]:
    """(total, available) of all nodes together."""
    total = sum(node.total.get(resource, 0) for node in nodes)
    return total, sum(node.available.get(resource, 0) for node in nodes)
