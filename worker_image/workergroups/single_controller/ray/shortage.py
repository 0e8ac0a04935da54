"""Explain why bundles do not fit on a cluster: which resource is short, how much is needed and how much exists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from workergroups.ray_private.cluster_state import NodeResources

NOTHING: Mapping[str, Mapping[str, float]] = {}


def explain_shortage(bundles: Sequence[Mapping[str, float]], nodes: Sequence[NodeResources], *, one_node: bool) -> str:
    """Name the resources that keep ``bundles`` from being placed.

    Args:
        bundles: Resources per bundle, such as ``{"CPU": 10, "GPU": 1}``.
        nodes: The live nodes.
        one_node: Whether one node must hold all bundles (STRICT_PACK), or all nodes together.

    Returns:
        One clause per short resource, with the required, free and total amounts.
    """
    required = _sum_of(bundles)
    if short := _short(required, nodes, one_node=one_node):
        return "; ".join(short)
    wanted = ", ".join(f"{amount:g} {resource}" for resource, amount in required.items())
    return f"each resource alone would fit, but no node has all of it free at once: {wanted} {_where(one_node)}"


def explain_impossible(
    process_on_nodes: Sequence[int],
    bundle: Mapping[str, float],
    nodes: Sequence[NodeResources],
    *,
    one_node: bool,
    taken: Mapping[str, Mapping[str, float]] = NOTHING,
) -> str | None:
    """Return why a pool would not fit even if nothing else ran; ``None`` if it might.

    Args:
        process_on_nodes: Bundles per placement group.
        bundle: Resources of each bundle.
        nodes: The live nodes.
        one_node: Whether one node must hold each placement group.
        taken: What does run, and will not end: resources by node.
    """
    empty = [replace(node, available=_without(node.total, taken.get(node.node_id, {}))) for node in nodes]
    largest, whole = ([bundle] * count for count in (max(process_on_nodes, default=0), sum(process_on_nodes)))
    if one_node and not any(_fits(_sum_of(largest), node) for node in empty):
        return explain_shortage(largest, empty, one_node=True)
    return "; ".join(_short(_sum_of(whole), empty, one_node=False)) or None


def _without(total: Mapping[str, float], taken: Mapping[str, float]) -> dict[str, float]:
    return {resource: amount - taken.get(resource, 0) for resource, amount in total.items()}


def fitting_cpus(
    process_on_nodes: Sequence[int], bundle: Mapping[str, float], nodes: Sequence[NodeResources], *, one_node: bool
) -> int | None:
    """Return how many of its CPUs each bundle can have, so that the pool would fit if nothing else ran.

    Arguments as for `explain_impossible`. The result is ``None`` if the pool would not even fit with one CPU each.
    """
    for cpus in range(int(bundle["CPU"]), 0, -1):
        if explain_impossible(process_on_nodes, {**bundle, "CPU": cpus}, nodes, one_node=one_node) is None:
            return cpus
    return None


def _short(required: Mapping[str, float], nodes: Sequence[NodeResources], *, one_node: bool) -> list[str]:
    short = []
    for resource, amount in required.items():
        total, available = _best(resource, nodes) if one_node else _sum(resource, nodes)
        if available < amount:
            holder = "the best node" if one_node else "the cluster"
            wanted = f"{amount:g} required {_where(one_node)}"
            short.append(f"{resource}: {wanted}, {holder} has {available:g} free of {total:g}")
    return short


def _sum_of(bundles: Iterable[Mapping[str, float]]) -> Mapping[str, float]:
    required = Counter[str]()
    for bundle in bundles:
        required.update(bundle)
    return required


def _fits(required: Mapping[str, float], node: NodeResources) -> bool:
    return all(node.available.get(resource, 0) >= amount for resource, amount in required.items())


def _where(one_node: bool) -> str:
    return "on one node" if one_node else "on all nodes together"


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
