"""The condition Progressing: whether an object is becoming ready, has become ready, or takes longer than it may.

It is like a Deployment's. It rests on the operator's clock, so it does not become Unknown when Ready does.
"""

from datetime import UTC, datetime

from workergroups_api.conditions import ConditionStatus, Finding
from workergroups_api.vocabulary import IN_QUEUE, PAUSED, SUSPENDED, ConditionType, Reason
from workergroups_operator.policy.deadline import Wait


def progressing(ready: Finding, wait: Wait | None, now: datetime) -> Finding:
    """Return Progressing of an object; `wait` is None if the object is ready, or if waiting cannot make it ready.

    The messages contain no times that pass, so they change only with the deadline or with `Ready`.
    """
    if ready.status == "True":
        return _finding("True", Reason.BECAME_READY, "")
    cause = f"{ready.reason}: {ready.message}"
    if wait is None and ready.reason in PAUSED:
        return _finding("Unknown", ready.reason, "a rank waits for a person, and meanwhile there is no deadline")
    if wait is None and ready.reason in SUSPENDED:
        return _finding("False", ready.reason, "there is no deadline while it is suspended")
    if wait is None and ready.reason in IN_QUEUE:
        return _finding("Unknown", ready.reason, "a queue has not admitted it, and meanwhile there is no deadline")
    if wait is None:
        return _finding("False", ready.reason, f"waiting cannot make it ready; {cause}")
    since = f"waiting since {_date_and_time(wait.since)}"
    if not wait.is_over(now):
        return _finding("True", Reason.WAITING_FOR_READY, f"{since}; the deadline is {_date_and_time(wait.until)}")
    late = f"{since}, for more than {(wait.until - wait.since).total_seconds():.0f} s; the operator keeps trying"
    return _finding("False", Reason.PROGRESS_DEADLINE_EXCEEDED, f"{late}; {cause}")


def _finding(status: ConditionStatus, reason: str, message: str) -> Finding:
    return Finding(type=ConditionType.PROGRESSING, status=status, reason=reason, message=message)


def _date_and_time(moment: datetime) -> str:
    """Return a time with its date: a wait may last for days."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
