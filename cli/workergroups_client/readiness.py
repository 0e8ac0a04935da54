"""Waiting until pools and groups are ready, or cannot be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone

from .cluster import Cluster
from .errors import CannotBeReadyError, DeadlineError
from .names import Target, find
from .status import Status, status_of
from .waiting import look_again

UNSEEN_SECONDS = 60
_LONGEST = 24 * 3600
"""Each object has a deadline of its own, which its status tells."""

Show = Callable[[Sequence[Status]], None]


def wait_until_ready(cluster: Cluster, targets: Sequence[Target], show: Show) -> list[Status]:
    """Look until all are ready; what is seen is shown each time.

    Raises:
        CannotBeReadyError: One says that no waiting will help, or that its own deadline has passed.
        DeadlineError: The operator does not look at them.
    """
    unseen_until = None
    for left in look_again(_LONGEST, pause=1):
        statuses = [status_of(find(cluster, f"{target.what}/{target.name}")) for target in targets]
        show(statuses)
        if all(status.is_ready for status in statuses):
            return statuses
        for status in statuses:
            if status.is_hopeless:
                raise CannotBeReadyError(f"{status.what} {status.name} will not become ready: {why(status)}")
        if all(status.is_current for status in statuses):
            unseen_until = None
        else:
            unseen_until = unseen_until if unseen_until is not None else left - UNSEEN_SECONDS
            if left < unseen_until:
                raise DeadlineError(
                    f"after {UNSEEN_SECONDS} s, the operator has not looked at what was applied: is it installed, and "
                    f"does it run? helm list --all-namespaces; kubectl get pods -n workergroups-system"
                )
    raise DeadlineError("not ready within a day")


def why(status: Status) -> str:
    """What it waits for, or why it waits in vain, in one line."""
    summary = status.summary
    if summary is None or not status.is_current:
        return "the operator has not looked at it yet"
    return f"{summary.reason}: {summary.message}"


def until(status: Status) -> str:
    """How long it is going to wait, in words; empty if it does not wait."""
    if status.deadline is None:
        return ""
    left = (status.deadline - datetime.now(timezone.utc)).total_seconds()
    return f"{left:.0f} s left" if left > 0 else "its deadline has passed"
