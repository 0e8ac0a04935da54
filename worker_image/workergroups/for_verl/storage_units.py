"""On which nodes TransferQueue, which verl's trainer sends its batches through, starts its storage units.

Each unit needs a CPU. TransferQueue pins them to all nodes in turn, also to a head that has one CPU, and then waits for
them without a deadline.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import wraps

from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from workergroups.ray_private.cluster_state import live_nodes

Strategies = Callable[..., "list[NodeAffinitySchedulingStrategy]"]


def on_nodes_with_room(original: Strategies) -> Strategies:
    """Return TransferQueue's function without the nodes that are too small, unless the user has named nodes."""

    @wraps(original)
    def get_node_round_robin_scheduling_strategies(
        num_actors: int, required_node_resource: str | None = None
    ) -> list[NodeAffinitySchedulingStrategy]:
        if required_node_resource is not None:
            return original(num_actors, required_node_resource)
        nodes = nodes_with_room({node.node_id: node.total.get("CPU", 0) for node in live_nodes()}, num_actors)
        turns = (nodes[number % len(nodes)] for number in range(num_actors))
        return [NodeAffinitySchedulingStrategy(node, soft=False) for node in turns]

    return get_node_round_robin_scheduling_strategies


def nodes_with_room(cpus: Mapping[str, float], units: int) -> list[str]:
    """Return the nodes that have a CPU for each unit if all of these nodes take turns; all nodes if there are none."""
    nodes = sorted(cpus)
    while nodes:
        smallest = min(nodes, key=lambda node: cpus[node])
        if cpus[smallest] >= math.ceil(units / len(nodes)):
            return nodes
        nodes.remove(smallest)
    return sorted(cpus)
