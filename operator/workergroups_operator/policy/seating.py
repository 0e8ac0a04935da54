"""Which bundles each group sits on (verl's split and merge), or why it cannot sit."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workergroups_api.plan import PlannedSeats
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.worker_group import PoolRef, WorkerGroup


@dataclass(frozen=True)
class Refusal:
    """Why a group gets no seats, and the way out."""

    reason: str
    message: str


Seating = tuple[PlannedSeats, ...] | Refusal


def seat(
    groups: Sequence[WorkerGroup], pools: Sequence[ResourcePool], pools_elsewhere: Mapping[str, str]
) -> dict[str, Seating]:
    """Seats by group. Groups are served in the order given: who comes first keeps the place."""
    by_name = {pool.name: pool for pool in pools}
    taken: Counter[tuple[str, int]] = Counter()
    seating: dict[str, Seating] = {}
    for group in groups:
        seats = _seats(group, by_name, pools_elsewhere, taken)
        seating[group.name] = seats
        if not isinstance(seats, Refusal):
            taken.update(_bundles(seats))
    return seating


def _bundles(seats: Sequence[PlannedSeats]) -> list[tuple[str, int]]:
    return [(part.pool, part.start + offset) for part in seats for offset in range(part.count)]


def _seats(
    group: WorkerGroup,
    pools: Mapping[str, ResourcePool],
    pools_elsewhere: Mapping[str, str],
    taken: Counter[tuple[str, int]],
) -> Seating:
    seats = []
    for index, ref in enumerate(group.spec.pools):
        pool = pools.get(ref.name)
        if pool is None:
            return _absent(index, ref, pools_elsewhere)
        part = _part(index, ref, pool)
        if isinstance(part, Refusal):
            return part
        if any(taken[bundle] >= pool.spec.max_colocate_count for bundle in _bundles([part])):
            return Refusal(
                "PoolFull",
                f"spec.pools[{index}]: {pool.spec.max_colocate_count} groups share these bundles of pool {ref.name} "
                "already (its spec.maxColocateCount): delete one of them, or use other bundles",
            )
        seats.append(part)
    return tuple(seats)


def _absent(index: int, ref: PoolRef, pools_elsewhere: Mapping[str, str]) -> Refusal:
    if ref.name in pools_elsewhere:
        return Refusal(
            "PoolsOnDifferentClusters",
            f"spec.pools[{index}]: pool {ref.name} is on cluster {pools_elsewhere[ref.name]}, the first pool is not: "
            "give the pools the same spec.cluster",
        )
    return Refusal("PoolNotFound", f"spec.pools[{index}]: there is no usable ResourcePool {ref.name}: create it first")


def _part(index: int, ref: PoolRef, pool: ResourcePool) -> PlannedSeats | Refusal:
    if ref.bundles is None:
        return PlannedSeats(pool=ref.name, start=0, count=pool.world_size)
    end = ref.bundles.start + ref.bundles.count
    if end > pool.world_size:
        return Refusal(
            "BundlesOutsidePool",
            f"spec.pools[{index}].bundles ends at {end}, but pool {ref.name} has {pool.world_size} bundles: "
            "lower start or count",
        )
    return PlannedSeats(pool=ref.name, start=ref.bundles.start, count=ref.bundles.count)
