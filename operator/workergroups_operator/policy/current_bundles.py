"""What a group keeps when the size of its pool changes: ranks that run do not lose their bundles for more of them."""

from dataclasses import dataclass

from workergroups_api.plan import PlannedBundles
from workergroups_api.resource_pool import ResourcePool
from workergroups_operator.policy.pool_size import PoolCapacity


@dataclass(frozen=True)
class CurrentBundles:
    """The bundles of a group's last incarnation."""

    bundles: tuple[PlannedBundles, ...] = ()
    # Nothing of the group was ever launched, so it has nothing to lose.
    is_new: bool = True
    # The group follows its pools, or its ranks are recreated anyway.
    may_grow: bool = True
    # As before, or this incarnation has no ranks: then it must not hold nodes that are to go.
    may_shrink: bool = True

    def part(self, pool: ResourcePool, start: int) -> PlannedBundles | None:
        """Return the bundles of this pool, and not of an earlier one of its name, that begin with this one."""
        return next((part for part in self.bundles if _is_of(pool, part) and part.start == start), None)


def _is_of(pool: ResourcePool, part: PlannedBundles) -> bool:
    return part.pool == pool.name and part.uid in (None, pool.uid)


def bundle_limit(pool: ResourcePool, start: int, capacity: PoolCapacity, current: CurrentBundles) -> int:
    """Return where the bundles of a group in the pool must end, if they begin with this one.

    While the pool shrinks, groups that have bundles keep them, and no other group gets one beyond the new size.
    """
    is_kept = current.part(pool, start) is not None and not current.is_new
    return (max(capacity.wanted, capacity.present) if is_kept else capacity.wanted) * pool.spec.processes_per_node


def nodes_of_whole_pool(pool: ResourcePool, capacity: PoolCapacity, current: CurrentBundles) -> int:
    """Return on how many nodes a group runs that uses the whole pool.

    It gets more only when their bundles are reserved, since new nodes may never come.
    """
    part = current.part(pool, 0)
    if part is None or current.is_new:
        return capacity.wanted
    before = min(part.count // pool.spec.processes_per_node, max(capacity.wanted, capacity.present))
    is_smaller, is_reserved = capacity.wanted < before, capacity.reserved >= capacity.wanted
    return capacity.wanted if (current.may_shrink if is_smaller else current.may_grow and is_reserved) else before
