"""The status of a pool or a group, with its conditions in the order in which they become true."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from workergroups_api.manifest import Manifest
from workergroups_api.vocabulary import GROUP_CONDITIONS, POOL_CONDITIONS, UNTIMED, ConditionType, Reason

from .names import POOL, Target
from .reading import group_status, pool_status

if TYPE_CHECKING:
    from workergroups_api.conditions import Condition
    from workergroups_api.failure_policy import KeptFailure
    from workergroups_api.group_status import WorkerGroupStatus
    from workergroups_api.pool_status import PoolDrivers, ResourcePoolStatus
    from workergroups_api.report import NodeReport


@dataclass(frozen=True)
class Status:
    """The status of a pool or a group."""

    what: str
    name: str
    namespace: str
    conditions: tuple[Condition, ...]
    deadline: datetime | None
    """By when it must be ready; ``None`` if it is ready, waits for a person, or waiting does not help."""
    wanted: int | None
    """Nodes of a pool, ranks of a group."""
    ready: int
    """How many of them are ready."""
    is_current: bool
    """Whether the operator has seen the latest spec."""
    incarnation: int | None = None
    """Of a group."""
    restarts: int = 0
    """How often the ranks of a group were restarted after failures."""
    failures: tuple[KeptFailure, ...] = ()
    """The latest failures of a group's ranks, also of earlier incarnations, the latest first."""
    unreserved: tuple[NodeReport, ...] = ()
    """Nodes of a pool that are not reserved."""
    drivers: PoolDrivers | None = None
    """The drivers on a pool's Ray cluster; ``None`` while nobody has counted them."""
    manifest: Manifest = field(default_factory=dict, repr=False, compare=False)
    """The object as the API server has it."""

    @property
    def is_pool(self) -> bool:
        """Whether it is the status of a pool, and not of a group."""
        return self.what == POOL

    @property
    def summary(self) -> Condition | None:
        """The condition Ready; ``None`` until the operator has seen the object."""
        return self.condition(ConditionType.READY)

    @property
    def what_is_old(self) -> str | None:
        """What runs that the spec no longer asks for; ``None`` if nothing is known to be old."""
        found = self.condition(ConditionType.UP_TO_DATE)
        return found.message if found is not None and found.status == "False" else None

    @property
    def is_late(self) -> bool:
        """Whether its deadline has passed; the operator keeps trying."""
        progress = self.condition(ConditionType.PROGRESSING)
        return self.is_current and progress is not None and progress.reason == Reason.PROGRESS_DEADLINE_EXCEEDED

    @property
    def is_ready(self) -> bool:
        """Whether the latest spec is ready."""
        return self.is_current and self.summary is not None and self.summary.status == "True"

    @property
    def has_lost_drivers(self) -> bool:
        """Whether the pool is ready, but its drivers ended with Ray's head, and no other one has connected since."""
        return self.is_ready and self.summary is not None and self.summary.reason == Reason.DRIVERS_LOST

    @property
    def is_complete(self) -> bool:
        """Whether the method that a group runs has returned on all ranks. The group is ready then, and has no ranks."""
        return self.is_ready and self.summary is not None and self.summary.reason == Reason.COMPLETE

    @property
    def is_hopeless(self) -> bool:
        """Whether it is not ready and waiting will not help."""
        summary = self.summary
        if summary is None or not self.is_current or summary.status != "False" or summary.reason in UNTIMED:
            return False
        return self.deadline is None

    def condition(self, type_: ConditionType) -> Condition | None:
        """Return the condition of that type; ``None`` if there is none."""
        return next((condition for condition in self.conditions if condition.type == type_), None)


def status_of(target: Target) -> Status:
    """Return the status of a pool or a group.

    Raises:
        ClientError: The object has a value that this version cannot read.
    """
    return _pool_status(target) if target.what == POOL else _group_status(target)


def _pool_status(pool: Target) -> Status:
    status = pool_status(pool)
    known = _status(pool, status, POOL_CONDITIONS, wanted=status.nodes, ready=status.ready_nodes)
    return replace(known, unreserved=status.reservation.nodes if status.reservation else (), drivers=status.drivers)


def _group_status(group: Target) -> Status:
    status = group_status(group)
    known = _status(group, status, GROUP_CONDITIONS, wanted=status.world_size, ready=status.ready_ranks)
    restarts = status.restarts.count if status.restarts else 0
    return replace(known, incarnation=status.incarnation, restarts=restarts, failures=status.failures)


def _status(
    target: Target,
    status: ResourcePoolStatus | WorkerGroupStatus,
    order: tuple[ConditionType, ...],
    *,
    wanted: int | None,
    ready: int | None,
) -> Status:
    """Return what the statuses of pools and groups have in common."""
    return Status(
        what=target.what,
        name=target.name,
        namespace=target.namespace,
        conditions=_in_order(status.conditions, order),
        deadline=status.deadline,
        wanted=wanted,
        ready=ready or 0,
        is_current=status.observed_generation == target.generation,
        manifest=target.manifest,
    )


def _in_order(conditions: Iterable[Condition], order: tuple[ConditionType, ...]) -> tuple[Condition, ...]:
    """Sort conditions; types that only a newer operator knows come last."""
    known: dict[str, int] = {type_: index for index, type_ in enumerate(order)}
    return tuple(sorted(conditions, key=lambda condition: known.get(condition.type, len(known))))
