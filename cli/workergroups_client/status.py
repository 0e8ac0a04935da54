"""What a pool's or group's status says, with its conditions in the order in which they become true."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from workergroups_api.vocabulary import GROUP_CONDITIONS, PAUSED, POOL_CONDITIONS, ConditionType, Reason

from .names import GROUP, POOL, Target
from .pauses import reported_ranks
from .times import moment

_CHAINS = {POOL: POOL_CONDITIONS, GROUP: GROUP_CONDITIONS}


@dataclass(frozen=True)
class Condition:
    """One condition, as the operator has written it."""

    type: str
    status: str
    """True, False or Unknown."""
    reason: str
    message: str
    since: datetime | None


@dataclass(frozen=True)
class Status:
    """A pool or a group as it is."""

    what: str
    name: str
    namespace: str
    conditions: tuple[Condition, ...]
    deadline: datetime | None
    """By when it is to be ready; ``None`` if it is, if it waits for a person, or if waiting will not help."""
    wanted: int | None
    """Nodes of a pool, ranks of a group."""
    ready: int
    """How many of them are ready."""
    incarnation: int | None
    """Of a group."""
    failures: tuple[str, ...]
    """Ranks that died, and nodes that are not reserved, each with its reason."""
    is_current: bool
    """Whether it speaks of the spec as it is now."""

    @property
    def summary(self) -> Condition | None:
        """The condition Ready; ``None`` while nobody has looked at the object."""
        return next((condition for condition in self.conditions if condition.type == ConditionType.READY), None)

    @property
    def is_ready(self) -> bool:
        """Whether it is ready, as it is written now."""
        return self.is_current and self.summary is not None and self.summary.status == "True"

    @property
    def is_hopeless(self) -> bool:
        """Whether it is not ready, and no waiting will help."""
        summary = self.summary
        if summary is None or not self.is_current or summary.status != "False" or summary.reason in PAUSED:
            return False
        return self.deadline is None or summary.reason == Reason.DEADLINE_EXCEEDED


def status_of(target: Target) -> Status:
    """What its status says."""
    metadata, status = target.manifest["metadata"], target.manifest.get("status") or {}
    wanted, ready = ("nodes", "readyNodes") if target.what == POOL else ("worldSize", "readyRanks")
    return Status(
        what=target.what,
        name=metadata["name"],
        namespace=metadata["namespace"],
        conditions=_chain(target.what, status.get("conditions") or []),
        deadline=moment(deadline) if (deadline := status.get("deadline")) else None,
        wanted=status.get(wanted),
        ready=status.get(ready) or 0,
        incarnation=status.get("incarnation"),
        failures=tuple(_failures(target.what, status)),
        is_current=status.get("observedGeneration") == metadata.get("generation"),
    )


def _chain(what: str, said: list[dict[str, Any]]) -> tuple[Condition, ...]:
    """In the order of the chain; such as a newer operator may have come last."""
    order = {str(condition): index for index, condition in enumerate(_CHAINS[what])}
    conditions = [
        Condition(
            each["type"],
            each["status"],
            each.get("reason", ""),
            each.get("message", ""),
            moment(each["lastTransitionTime"]),
        )
        for each in said
    ]
    return tuple(sorted(conditions, key=lambda condition: order.get(condition.type, len(order))))


def _failures(what: str, status: dict[str, Any]) -> list[str]:
    if what == POOL:
        nodes = (status.get("reservation") or {}).get("nodes") or []
        return [
            f"node {each['index']}: {each['state']}: {each.get('message') or each.get('pod') or ''}" for each in nodes
        ]
    failures = reported_ranks(status).get("failures") or []
    return [f"rank {each['rank']}: {each['reason']}: {each.get('message', '')}" for each in failures]
