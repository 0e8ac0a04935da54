"""Which of the reserved bundles a pool of a program gets, such as one of verl's. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby

BundleKey = tuple[str, int]
"""The id of a placement group, and the number of a bundle in it."""


@dataclass(frozen=True)
class OfferedNode:
    """The placement group of one node of a ResourcePool."""

    pool: str
    index: int
    """The node's number in the pool."""
    placement_group: str
    bundles: Sequence[Mapping[str, float]]


@dataclass(frozen=True)
class Share:
    """Consecutive bundles of one node."""

    node: OfferedNode
    first: int
    count: int

    @property
    def keys(self) -> list[BundleKey]:
        """The bundles."""
        return [(self.node.placement_group, self.first + number) for number in range(self.count)]


def choose(
    name: str,
    process_on_nodes: Sequence[int],
    wanted: Mapping[str, float],
    offered: Sequence[OfferedNode],
    taken: Collection[BundleKey],
) -> list[Share] | None:
    """Return a share for each node of the program's pool; ``None`` if there is no room.

    They are of one ResourcePool if possible: the one with its name, in which `-` stands for `_`, or else the one with
    the fewest free bundles. Its nodes are used in their order, each once if they are enough.

    Args:
        name: The name of the program's pool.
        process_on_nodes: How many bundles each node needs.
        wanted: What each bundle needs at least.
        offered: The nodes of all ResourcePools.
        taken: The bundles that are taken.
    """
    pools = _by_pool(offered)
    free = {pool: sum(free_bundles(node, wanted, taken) for node in nodes) for pool, nodes in pools.items()}
    by_fit = sorted(pools, key=lambda pool: (pool != name.replace("_", "-"), free[pool], pool))
    for nodes in (*(pools[pool] for pool in by_fit), list(chain.from_iterable(pools.values()))):
        for is_each_once in (True, False):
            shares = _first_fit(process_on_nodes, wanted, nodes, taken, is_each_once)
            if shares is not None:
                return shares
    return None


def free_bundles(node: OfferedNode, wanted: Mapping[str, float], taken: Collection[BundleKey]) -> int:
    """Return how many of a node's bundles are free and large enough."""
    return sum(_is_free(node, number, wanted, taken) for number in range(len(node.bundles)))


def shortage(
    name: str,
    process_on_nodes: Sequence[int],
    wanted: Mapping[str, float],
    offered: Iterable[OfferedNode],
    taken: Collection[BundleKey],
) -> str:
    """Return the sentence that says why `choose` has found nothing."""
    there = "; ".join(
        f"pool {pool}: {_counts(free_bundles(node, wanted, taken) for node in nodes)} of "
        f"{_counts(len(node.bundles) for node in nodes)} on its nodes"
        for pool, nodes in _by_pool(offered).items()
    )
    amounts = ", ".join(f"{amount:g} {resource}" for resource, amount in wanted.items())
    return (
        f"the program's pool {name!r} needs {_counts(process_on_nodes)} bundles on its nodes, each with {amounts}. "
        f"Free, and large enough, are: {there}"
    )


def _by_pool(offered: Iterable[OfferedNode]) -> dict[str, list[OfferedNode]]:
    """Return the nodes of each pool in their order, pools by name."""
    ordered = sorted(offered, key=lambda node: (node.pool, node.index))
    return {pool: list(nodes) for pool, nodes in groupby(ordered, key=lambda node: node.pool)}


def _counts(numbers: Iterable[int]) -> str:
    return " + ".join(map(str, numbers))


def _first_fit(
    process_on_nodes: Sequence[int],
    wanted: Mapping[str, float],
    nodes: Sequence[OfferedNode],
    taken: Collection[BundleKey],
    is_each_once: bool,
) -> list[Share] | None:
    gone, left = set(taken), list(nodes)
    shares: list[Share] = []
    for count in process_on_nodes:
        fitting = (_free_run(node, count, wanted, gone) for node in left)
        share = next((share for share in fitting if share is not None), None)
        if share is None:
            return None
        shares.append(share)
        gone.update(share.keys)
        if is_each_once:
            left.remove(share.node)
    return shares


def _free_run(node: OfferedNode, count: int, wanted: Mapping[str, float], taken: Collection[BundleKey]) -> Share | None:
    """Return the first consecutive free bundles of a node."""
    for first in range(len(node.bundles) - count + 1):
        if all(_is_free(node, number, wanted, taken) for number in range(first, first + count)):
            return Share(node, first, count)
    return None


def _is_free(node: OfferedNode, number: int, wanted: Mapping[str, float], taken: Collection[BundleKey]) -> bool:
    bundle = node.bundles[number]
    is_enough = all(bundle.get(resource, 0) >= amount for resource, amount in wanted.items())
    return is_enough and (node.placement_group, number) not in taken
