"""The conditions that follow from `Ready`: Progressing, Failed and Stalled.

Progressing is like a Deployment's: whether an object is becoming ready, has become ready, or takes longer than it may.
It rests on the operator's clock, so it does not become Unknown when Ready does.

Failed tells whether waiting cannot make an object ready, so that `kubectl wait` can end on it. Stalled is Failed by the
name that kstatus looks for, as tools for GitOps do.
"""

from datetime import datetime

from workergroups_api.conditions import ConditionStatus, Finding
from workergroups_api.vocabulary import IN_QUEUE, PAUSED, SUSPENDED, UNTIMED, ConditionType, Reason
from workergroups_operator.policy.deadline import Wait, date_and_time


def progressing(ready: Finding, wait: Wait | None, now: datetime) -> Finding:
    """Return Progressing of an object; `wait` is None if the object is ready, or if waiting cannot make it ready.

    The messages contain no times that pass, so they change only with the deadline or with `Ready`.
    """
    if ready.status == "True":
        return _progressing("True", Reason.BECAME_READY, "")
    cause = f"{ready.reason}: {ready.message}"
    if wait is None and ready.reason in PAUSED:
        return _progressing("Unknown", ready.reason, "a rank waits for a person, and meanwhile there is no deadline")
    if wait is None and ready.reason in SUSPENDED:
        return _progressing("False", ready.reason, "there is no deadline while it is suspended")
    if wait is None and ready.reason in IN_QUEUE:
        return _progressing("Unknown", ready.reason, "a queue has not admitted it, and meanwhile there is no deadline")
    if wait is None:
        return _progressing("False", ready.reason, f"waiting cannot make it ready; {cause}")
    since = f"waiting since {date_and_time(wait.since)}"
    if not wait.is_over(now):
        return _progressing("True", Reason.WAITING_FOR_READY, f"{since}; the deadline is {date_and_time(wait.until)}")
    late = f"{since}, for more than {(wait.until - wait.since).total_seconds():.0f} s; the operator keeps trying"
    return _progressing("False", Reason.PROGRESS_DEADLINE_EXCEEDED, f"{late}; {cause}")


def failed(ready: Finding) -> tuple[Finding, Finding]:
    """Return Failed and Stalled of an object. What waits for a person or in a queue is no failure."""
    if ready.status == "Unknown":
        return _failed("Unknown", ready.reason, ready.message)
    if ready.status == "False" and ready.final and ready.reason not in (*UNTIMED, *SUSPENDED):
        return _failed("True", ready.reason, ready.message)
    return _failed("False", Reason.NO_FAILURE, "")


def _progressing(status: ConditionStatus, reason: str, message: str) -> Finding:
    return Finding(type=ConditionType.PROGRESSING, status=status, reason=reason, message=message)


def _failed(status: ConditionStatus, reason: str, message: str) -> tuple[Finding, Finding]:
    one = Finding(type=ConditionType.FAILED, status=status, reason=reason, message=message)
    return one, one.model_copy(update={"type": ConditionType.STALLED})
