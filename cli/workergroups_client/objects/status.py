"""The status of a pool or a group, with its conditions in the order in which they become true.

Whether it is ready is read at once, and its details when they are asked for: their models take longer than the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from workergroups_api.manifest import Manifest
from workergroups_api.vocabulary import GROUP_CONDITIONS, POOL_CONDITIONS, UNTIMED, ConditionType, Reason

from ..times import age, moment
from .names import POOL, Target
from .reading import group_status, group_summary, pool_status, pool_summary

if TYPE_CHECKING:
    from workergroups_api.conditions import Condition
    from workergroups_api.failure_policy import KeptFailure
    from workergroups_api.group_status import WorkerGroupStatus
    from workergroups_api.pool_status import PoolDrivers, ResourcePoolStatus
    from workergroups_api.report import NodeReport
    from workergroups_api.status_summary import StatusSummary


@dataclass(frozen=True)
class Status:
    """The status of a pool or a group."""

    conditions: tuple[Condition, ...]
    deadline: datetime | None
    """When it must be ready; ``None`` if it is ready, waits for a person, or waiting does not help."""
    wanted: int | None
    """Nodes of a pool, ranks of a group."""
    ready: int
    """How many of them are ready."""
    is_current: bool
    """Whether the operator has seen the latest spec."""
    incarnation: int | None = None
    """Of a group."""
    target: Target = field(kw_only=True, repr=False, compare=False)
    """The object as the API server has it."""

    @property
    def what(self) -> str:
        """``pool`` or ``group``."""
        return self.target.what

    @property
    def name(self) -> str:
        """The name of the object."""
        return self.target.name

    @property
    def namespace(self) -> str:
        """The namespace of the object."""
        return self.target.namespace

    @property
    def manifest(self) -> Manifest:
        """The object as the API server has it."""
        return self.target.manifest

    @property
    def restarts(self) -> int:
        """How often the ranks of a group were restarted after failures."""
        # Read like this, since a list of objects does not wait for the whole status's models.
        history = (self.manifest.get("status") or {}).get("restarts") or {}
        return int(history.get("count") or 0)

    @property
    def oldest_call(self) -> str | None:
        """The call of a group's ranks that has been in flight for longest; ``None`` if none has been for a minute."""
        # Read like the restarts.
        call = ((self.manifest.get("status") or {}).get("ranks") or {}).get("oldestCall")
        return f"{call['method']} for {age(moment(call['since']))} on rank {call['rank']}" if call else None

    @property
    def weights(self) -> tuple[str, ...]:
        """Which weights the ranks of a group have, a text for each model, with the ranks that have other ones."""
        # Read like the restarts.
        reported = ((self.manifest.get("status") or {}).get("ranks") or {}).get("weights") or ()
        return tuple(
            f"{each['model']} version {each['version']}"
            + (f"; an older one on {_ranks(each['behind'])}" if each.get("behind") else "")
            + (f"; other bits than the replicas have on {_ranks(each['different'])}" if each.get("different") else "")
            for each in reported
        )

    @property
    def last_change(self) -> str | None:
        """Who wrote fields of the spec last, which, and how long ago; ``None`` if the spec is as it was created.

        Who has only removed fields since leaves no trace in the object.
        """
        entries = [
            entry
            for entry in self.manifest["metadata"].get("managedFields") or ()
            if "f:spec" in (entry.get("fieldsV1") or {}) and not entry.get("subresource") and entry.get("time")
        ]
        if not entries or self.manifest["metadata"].get("generation", 1) == 1:
            return None
        last = max(entries, key=lambda entry: moment(entry["time"]))
        fields = ", ".join(sorted(field.replace("f:", "spec.") for field in last["fieldsV1"]["f:spec"] if field != "."))
        return f"{last.get('manager')} {age(moment(last['time']))} ago: {fields}"

    @property
    def failures(self) -> tuple[KeptFailure, ...]:
        """The latest failures of a group's ranks, also of earlier incarnations, the latest first."""
        return self._group.failures if self._group else ()

    @property
    def unreserved(self) -> tuple[NodeReport, ...]:
        """Nodes of a pool that are not reserved."""
        return self._pool.reservation.nodes if self._pool and self._pool.reservation else ()

    @property
    def drivers(self) -> PoolDrivers | None:
        """The drivers on a pool's Ray cluster; ``None`` while they have not been counted."""
        return self._pool.drivers if self._pool else None

    @cached_property
    def _pool(self) -> ResourcePoolStatus | None:
        return pool_status(self.target) if self.is_pool else None

    @cached_property
    def _group(self) -> WorkerGroupStatus | None:
        return None if self.is_pool else group_status(self.target)

    @property
    def is_pool(self) -> bool:
        """Whether it is the status of a pool, and not of a group."""
        return self.what == POOL

    @property
    def summary(self) -> Condition | None:
        """The condition Ready; ``None`` until the operator has seen the object."""
        return self.condition(ConditionType.READY)

    @property
    def what_is_old(self) -> Condition | None:
        """The condition UpToDate, unless it is True or nothing has been launched yet."""
        found = self.condition(ConditionType.UP_TO_DATE)
        return None if found is None or found.status == "True" or found.reason == Reason.NOT_LAUNCHED else found

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
        ClientError: What tells whether it is ready has a value that this version cannot read; so do its details later.
    """
    return _pool_status(target) if target.what == POOL else _group_status(target)


def _pool_status(pool: Target) -> Status:
    found = pool_summary(pool)
    return _status(pool, found, POOL_CONDITIONS, wanted=found.nodes, ready=found.ready_nodes)


def _group_status(group: Target) -> Status:
    found = group_summary(group)
    numbers = {"wanted": found.world_size, "ready": found.ready_ranks, "incarnation": found.incarnation}
    return _status(group, found, GROUP_CONDITIONS, **numbers)


def _status(
    target: Target,
    found: StatusSummary,
    order: tuple[ConditionType, ...],
    *,
    wanted: int | None,
    ready: int | None,
    incarnation: int | None = None,
) -> Status:
    """Return what the statuses of pools and groups have in common."""
    return Status(
        target=target,
        conditions=_in_order(found.conditions, order),
        deadline=found.deadline,
        wanted=wanted,
        ready=ready or 0,
        is_current=found.observed_generation == target.generation,
        incarnation=incarnation,
    )


def _in_order(conditions: Iterable[Condition], order: tuple[ConditionType, ...]) -> tuple[Condition, ...]:
    """Sort conditions; types that only a newer operator knows come last."""
    known: dict[str, int] = {type_: index for index, type_ in enumerate(order)}
    return tuple(sorted(conditions, key=lambda condition: known.get(condition.type, len(known))))


def _ranks(ranges: str) -> str:
    """Return ranges with their noun."""
    return f"rank {ranges}" if ranges.isdecimal() else f"ranks {ranges}"
