"""How many nodes a pool has while its size changes, and which groups keep it from shrinking.

A pool grows at once, and its groups keep the nodes that they have. It shrinks from its last node downwards, and never
by a node on which a planned group has bundles.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count, islice, takewhile

from workergroups_api.manifest import name_of
from workergroups_api.plan import MAX_POOL_NODES, PlannedBundles
from workergroups_api.pool_status import MAX_VICTIMS, Victim
from workergroups_api.report import PoolReport
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import Component
from workergroups_common.ranges import expanded, numbers, ranges
from workergroups_operator.observed import Observed, is_running, node_group_of


@dataclass(frozen=True)
class PoolCapacity:
    """The nodes on which groups can have bundles."""

    # What the spec asks for.
    wanted: int
    # What the plan has: more while the pool shrinks, since groups on these nodes may stay.
    present: int
    # How many nodes, from the first, have their bundles and run.
    reserved: int = 0


@dataclass(frozen=True)
class PoolSize:
    """The size that a pool has in the plan."""

    nodes: int
    # See `PlannedPool.settled`.
    settled: int = 0
    victims: tuple[Victim, ...] = ()


def pool_capacities(observed: Observed, reports: Mapping[str, PoolReport]) -> dict[str, PoolCapacity]:
    """Return the room of each pool, given the reports that count."""
    return {pool.name: _capacity(pool, observed, reports[pool.name]) for pool in observed.pools}


def _capacity(pool: ResourcePool, observed: Observed, report: PoolReport) -> PoolCapacity:
    placed = reserved_pods(pool, report, observed)
    in_order = sum(1 for _ in takewhile(placed.__contains__, count()))
    return PoolCapacity(pool.spec.nodes, _present(pool, observed), in_order)


def _present(pool: ResourcePool, observed: Observed) -> int:
    """Return how many nodes the pool had at the last reconcile, also if the plan was deleted since."""
    planned = observed.planned_pool(pool.uid)
    live = observed.live_node_group(node_group_of(pool)) or {}
    return planned.nodes if planned else int(live.get("replicas") or pool.spec.nodes)


def reserved_pods(pool: ResourcePool, report: PoolReport, observed: Observed) -> dict[int, str]:
    """Return the pods of the nodes that have their bundles and still run, by the number of the node.

    If the pool reserves nothing, those are the nodes that have joined Ray.
    """
    # Nodes without bundles have no numbers.
    indices = numbers(report.reserved, MAX_POOL_NODES) if pool.is_reserved else count()
    placed = zip(indices, expanded(report.pods or ""), strict=False)
    running = _running_pods(pool, observed)
    return {index: pod for index, pod in placed if pod in running}


def _running_pods(pool: ResourcePool, observed: Observed) -> set[str]:
    pods = observed.pods_of(Component.WORKER, node_group_of(pool))
    return {name_of(pod) for pod in pods if is_running(pod)}


def pool_sizes(
    observed: Observed, capacities: Mapping[str, PoolCapacity], bundles: Mapping[str, Iterable[PlannedBundles]]
) -> dict[str, PoolSize]:
    """Return the size of each pool, given the bundles of all groups that are planned."""
    parts: dict[str, dict[str, list[PlannedBundles]]] = defaultdict(lambda: defaultdict(list))
    for group, of_group in bundles.items():
        for part in of_group:
            parts[part.pool][group].append(part)
    return {pool.name: _size(pool, capacities[pool.name], observed, parts[pool.name]) for pool in observed.pools}


def _size(
    pool: ResourcePool, capacity: PoolCapacity, observed: Observed, bundles: Mapping[str, Iterable[PlannedBundles]]
) -> PoolSize:
    """Return the size of a pool, given its bundles that groups have, by group."""
    beyond = {group: nodes for group, parts in bundles.items() if (nodes := _beyond(pool, parts))}
    victims = tuple(
        Victim(group=group, nodes=ranges({node for part in nodes for node in part}))
        for group, nodes in islice(beyond.items(), MAX_VICTIMS)
    )
    needed = max((part.stop for nodes in beyond.values() for part in nodes), default=0)
    planned = observed.planned_pool(pool.uid)
    settled = max(planned.settled if planned else 0, capacity.reserved)
    return PoolSize(max(capacity.wanted, needed), min(capacity.wanted, settled), victims)


def _beyond(pool: ResourcePool, parts: Iterable[PlannedBundles]) -> list[range]:
    """Return the nodes beyond the pool's size on which there are bundles of a group."""
    nodes = [part.nodes(pool.spec.processes_per_node) for part in parts]
    return [range(max(each.start, pool.spec.nodes), each.stop) for each in nodes if each.stop > pool.spec.nodes]
