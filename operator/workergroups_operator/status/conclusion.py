"""What the conditions of pools and groups rest on, the one way to sum them up, and the update that writes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from workergroups_api.conditions import Condition, ConditionStatus, Explanation, Finding, merge
from workergroups_api.manifest import Kind, Manifest
from workergroups_api.model import ApiModel
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import ConditionType
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.decisions import Decisions
from workergroups_operator.failures import Failures
from workergroups_operator.observed import Observed
from workergroups_operator.policy.deadline import Wait, wait_for_ready
from workergroups_operator.status.failed import failed
from workergroups_operator.status.progressing import progressing
from workergroups_operator.templates import Templates


@dataclass(frozen=True)
class Situation:
    """What the earlier steps of a turn found out about one cluster."""

    observed: Observed
    templates: Templates
    decisions: Decisions
    failures: Failures
    now: datetime


@dataclass(frozen=True)
class Conclusion:
    """Conditions, and the deadline that changes them without an event."""

    conditions: tuple[Condition, ...]
    ready: Condition
    # The finding that keeps Ready from being True, or the last one.
    weakest: Finding
    deadline: datetime | None
    requeue_after: float


@dataclass(frozen=True)
class StatusUpdate:
    """An object, and the operator's part of its status as it was and as it should be."""

    kind: Kind
    metadata: Manifest
    before: ApiModel | None
    after: ApiModel
    ready_before: Condition | None
    ready: Condition
    # False if the operator cannot read the object: its schema may refuse any status of it.
    is_readable: bool = True
    # What else an event should report; its reason is an `EventReason`.
    news: Explanation | None = None


def finding(type_: str, status: ConditionStatus, why: Explanation, **more: bool) -> Finding:
    """Return a finding from an explanation."""
    return Finding(type=type_, status=status, reason=why.reason, message=why.message, **more)


def conclude(
    subject: ResourcePool | WorkerGroup,
    chain: Sequence[Finding],
    aside: Sequence[Finding],
    now: datetime,
    notice: Explanation | None = None,
    tried_since: datetime | None = None,
    complete: Explanation | None = None,
) -> Conclusion:
    """Return the conditions: the chain of findings, `Ready`, which sums it up, what follows from that, and those aside.

    `Ready` is the first decisive finding of the chain, or else the first that is not True, or else the last. While it
    is True, `notice` takes the place of its reason and message. A deadline before `tried_since` was one of an earlier
    try. An object that is `complete` is ready, although nothing of it runs.
    """
    weak = [link for link in chain if link.status != "True"]
    weakest = next((link for link in weak if link.decisive), weak[0] if weak else chain[-1])
    ready = weakest.model_copy(update={"type": ConditionType.READY})
    if notice is not None and ready.status == "True":
        ready = ready.model_copy(update={"reason": notice.reason, "message": notice.message})
    if complete is not None:
        ready = finding(ConditionType.READY, "True", complete)
    wait = None if ready.status == "True" or ready.final else _wait(subject, now, tried_since)
    findings = (*chain, ready, progressing(ready, wait, now), *failed(ready), *aside)
    conditions = merge(subject.status.conditions, findings, subject.generation, now)
    summed = next(condition for condition in conditions if condition.type == ConditionType.READY)
    requeue_after = float("inf") if wait is None or wait.is_over(now) else wait.seconds_left(now)
    return Conclusion(conditions, summed, weakest, wait.until if wait else None, requeue_after)


def _wait(subject: ResourcePool | WorkerGroup, now: datetime, tried_since: datetime | None) -> Wait:
    before = subject.status
    deadline_before = before.deadline if before.observed_generation == subject.generation else None
    if deadline_before and tried_since and deadline_before < tried_since:
        deadline_before = None
    return wait_for_ready(deadline_before, subject.spec.progress_deadline_seconds, now)
