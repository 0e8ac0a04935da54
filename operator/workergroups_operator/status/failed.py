"""The conditions Failed and Stalled: whether waiting cannot make an object ready, so that `kubectl wait` can end on it.

Stalled is Failed by the name that kstatus looks for, as tools for GitOps do.
"""

from workergroups_api.conditions import ConditionStatus, Finding
from workergroups_api.vocabulary import SUSPENDED, UNTIMED, ConditionType, Reason


def failed(ready: Finding) -> tuple[Finding, Finding]:
    """Return both conditions of an object, given its `Ready`. What waits for a person or in a queue is no failure."""
    if ready.status == "Unknown":
        return _both("Unknown", ready.reason, ready.message)
    if ready.status == "False" and ready.final and ready.reason not in (*UNTIMED, *SUSPENDED):
        return _both("True", ready.reason, ready.message)
    return _both("False", Reason.NO_FAILURE, "")


def _both(status: ConditionStatus, reason: str, message: str) -> tuple[Finding, Finding]:
    one = Finding(type=ConditionType.FAILED, status=status, reason=reason, message=message)
    return one, one.model_copy(update={"type": ConditionType.STALLED})
