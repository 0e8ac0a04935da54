"""What the conditions of pools and groups rest on, and the one way to sum them up."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from workergroups_api.conditions import Condition, ConditionStatus, Explanation, Finding, find, merge
from workergroups_api.model import ApiObject
from workergroups_api.vocabulary import ConditionType, Reason
from workergroups_operator.decisions import Decisions
from workergroups_operator.failures import Failures
from workergroups_operator.observed import Observed
from workergroups_operator.policy.deadline import clock, wait_for_ready
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


def finding(type_: str, status: ConditionStatus, why: Explanation, **more: bool) -> Finding:
    """Return a finding from an explanation."""
    return Finding(type=type_, status=status, reason=why.reason, message=why.message, **more)


def conclude(
    subject: ApiObject,
    previous: Sequence[Condition],
    chain: Sequence[Finding],
    aside: Sequence[Finding],
    deadline_seconds: int,
    now: datetime,
) -> Conclusion:
    """Return the conditions: the chain of findings, `Ready`, which sums up the chain, and the findings aside.

    `Ready` is the first decisive finding of the chain, or else the first that is not True, or else the last. After the
    deadline its reason is DeadlineExceeded, and its message still tells what the object waits for.
    """
    weak = [link for link in chain if link.status != "True"]
    weakest = next((link for link in weak if link.decisive), weak[0] if weak else chain[-1])
    ready = weakest.model_copy(update={"type": ConditionType.READY})
    until, requeue_after = None, float("inf")
    if ready.status != "True" and not ready.final:
        created = datetime.fromisoformat(subject.metadata["creationTimestamp"])
        wait = wait_for_ready(created, find(previous, ConditionType.READY), deadline_seconds, now)
        until = wait.until
        if wait.is_over(now):
            late = f"not ready within {deadline_seconds} s, by {clock(wait.until)}: {ready.message}"
            ready = ready.model_copy(update={"reason": Reason.DEADLINE_EXCEEDED, "message": late})
        else:
            requeue_after = wait.seconds_left(now)
    conditions = merge(previous, (*chain, ready, *aside), subject.generation, now)
    summed = next(condition for condition in conditions if condition.type == ConditionType.READY)
    return Conclusion(conditions, summed, weakest, until, requeue_after)
