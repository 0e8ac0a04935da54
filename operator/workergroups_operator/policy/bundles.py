"""Which bundles each group gets (verl's split and merge), or why it gets none."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from workergroups_api.conditions import Explanation
from workergroups_api.plan import MAX_RANKS, PlannedBundles
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import Reason
from workergroups_api.worker_group import PoolRef, WorkerGroup
from workergroups_operator.policy.current_bundles import CurrentBundles, bundle_limit, nodes_of_whole_pool
from workergroups_operator.policy.pool_size import PoolCapacity
from workergroups_operator.policy.shares import Shares


@dataclass(frozen=True)
class Assigned:
    """The group has these bundles."""

    bundles: tuple[PlannedBundles, ...]


@dataclass(frozen=True)
class _Unassigned:
    why: Explanation
    bundles: ClassVar[tuple[PlannedBundles, ...]] = ()


class Suspended(_Unassigned):
    """The group is suspended itself; the plan keeps its number."""


class Finished(_Unassigned):
    """The group's run has ended; the plan keeps its number."""


class Blocked(_Unassigned):
    """The group cannot have bundles, or has no room in the plan, and is not planned."""


Assignment = Assigned | Suspended | Finished | Blocked
NONE_FINISHED: Mapping[str, Explanation] = {}


def assign_bundles(
    groups: Sequence[WorkerGroup],
    pools: Sequence[ResourcePool],
    pools_elsewhere: Mapping[str, str],
    capacities: Mapping[str, PoolCapacity],
    current: Mapping[str, CurrentBundles],
    finished: Mapping[str, Explanation] = NONE_FINISHED,
) -> dict[str, Assignment]:
    """Return the bundles of each group, and none for suspended and finished ones. The groups choose in the given order.

    Args:
        groups: The groups, in the order in which they choose.
        pools: The pools of the cluster.
        pools_elsewhere: The clusters of other pools that groups name.
        capacities: The nodes of each pool.
        current: The bundles that each group had until now.
        finished: How the runs of groups have ended.
    """
    by_name = {pool.name: pool for pool in pools}
    taken: dict[str, Shares] = defaultdict(Shares)
    assigned: dict[str, Assignment] = {}
    for group in groups:
        kept = current.get(group.name) or CurrentBundles()
        ended = finished.get(group.name)
        if ended is not None:
            assigned[group.name] = Finished(ended)
        elif group.spec.suspend:
            assigned[group.name] = Suspended(_suspended(group))
        else:
            parts = _parts(group, by_name, pools_elsewhere, taken, capacities, kept)
            assigned[group.name] = Blocked(parts) if isinstance(parts, Explanation) else Assigned(parts)
        for part in assigned[group.name].bundles:
            taken[part.pool].add(part.start, part.end)
    return assigned


def _parts(
    group: WorkerGroup,
    pools: Mapping[str, ResourcePool],
    pools_elsewhere: Mapping[str, str],
    taken: Mapping[str, Shares],
    capacities: Mapping[str, PoolCapacity],
    current: CurrentBundles,
) -> tuple[PlannedBundles, ...] | Explanation:
    parts: list[PlannedBundles] = []
    for index, ref in enumerate(group.pools):
        pool = pools.get(ref.name)
        if pool is None:
            return _absent(index, ref, pools_elsewhere)
        if not pool.is_reserved:
            return Explanation(
                Reason.POOL_NOT_RESERVED,
                f"spec.pools[{index}]: pool {ref.name} has spec.reservation: None, and so no bundles for ranks: use a "
                "pool with reservation: Eager",
            )
        part = _part(index, ref, pool, capacities[pool.name], current)
        if isinstance(part, Explanation):
            return part
        if any(part.overlaps(other) for other in parts):
            return Explanation(
                Reason.BUNDLES_TAKEN_TWICE,
                f"spec.pools[{index}] names bundles of pool {ref.name} that an entry before it names too: "
                "each bundle holds one rank of a group; change bundles.start or bundles.count",
            )
        if taken[pool.name].most(part.start, part.end) >= pool.spec.max_colocate_count:
            return Explanation(
                Reason.POOL_FULL,
                f"spec.pools[{index}]: {pool.spec.max_colocate_count} groups share these bundles of pool {ref.name} "
                "already (its spec.maxColocateCount): delete one of them, or use other bundles",
            )
        parts.append(part)
    return _too_many(sum(part.count for part in parts)) or tuple(parts)


def _too_many(ranks: int) -> Explanation | None:
    if ranks <= MAX_RANKS:
        return None
    return Explanation(
        Reason.GROUP_TOO_LARGE,
        f"the group would have {ranks} ranks, and may have {MAX_RANKS}: name fewer pools in spec.pools, or fewer of "
        "their bundles",
    )


def _suspended(group: WorkerGroup) -> Explanation:
    return Explanation(
        Reason.SUSPENDED,
        "spec.suspend is true: the group has no ranks and no bundles; to start it: "
        + group.in_namespace(f"workergroups resume group/{group.name}"),
    )


def _absent(index: int, ref: PoolRef, pools_elsewhere: Mapping[str, str]) -> Explanation:
    if ref.name in pools_elsewhere:
        return Explanation(
            Reason.POOLS_ON_DIFFERENT_CLUSTERS,
            f"spec.pools[{index}]: pool {ref.name} is on cluster {pools_elsewhere[ref.name]}, the first pool is not: "
            "give the pools the same spec.clusterName",
        )
    return Explanation(
        Reason.POOL_NOT_FOUND, f"spec.pools[{index}]: there is no usable ResourcePool {ref.name}: create it first"
    )


def _part(
    index: int, ref: PoolRef, pool: ResourcePool, capacity: PoolCapacity, current: CurrentBundles
) -> PlannedBundles | Explanation:
    if ref.bundles is None:
        count = nodes_of_whole_pool(pool, capacity, current) * pool.spec.processes_per_node
        return PlannedBundles(pool=ref.name, uid=pool.uid, start=0, count=count)
    end = ref.bundles.start + ref.bundles.count
    if end > bundle_limit(pool, ref.bundles.start, capacity, current):
        return Explanation(
            Reason.BUNDLES_OUTSIDE_POOL,
            f"spec.pools[{index}].bundles ends at {end}, but pool {ref.name} has {pool.world_size} bundles: "
            "lower start or count",
        )
    return PlannedBundles(pool=ref.name, uid=pool.uid, start=ref.bundles.start, count=ref.bundles.count)
