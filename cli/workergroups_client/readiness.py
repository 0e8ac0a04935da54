"""Waiting until pools and groups are ready, or cannot be."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from enum import Enum
from math import inf

from .cluster import Cluster
from .errors import CannotBeReadyError, ClientError, DeadlineError, UnreachableError
from .names import Target, find
from .status import Status, status_of
from .waiting import look_again

_LONGEST = 24 * 3600
"""Each object has a deadline of its own, which its status tells."""

Show = Callable[[Sequence[Status]], None]


class Verdict(Enum):
    """What several statuses say together; the value is for how many seconds it has to last to be believed.

    A status may be of before what was applied: that a ConfigMap has changed, the operator sees a moment later.
    """

    READY = 2.0
    HOPELESS = 5.0
    UNSEEN = 60.0
    UNREACHABLE = 120.0
    WAITING = inf


def wait_until_ready(cluster: Cluster, targets: Sequence[Target], show: Show) -> list[Status]:
    """Look until all are ready; what is seen is shown each time, and that all are ready once that is believed.

    Raises:
        CannotBeReadyError: One says that no waiting will help, or that its own deadline has passed.
        DeadlineError: The operator does not look at them.
        UnreachableError: The API server has not answered for a while.
    """
    verdict, since = Verdict.WAITING, 0.0
    statuses: list[Status] = []
    failure: ClientError | None
    for _ in look_again(_LONGEST, pause=1):
        before, failure = verdict, None
        try:
            statuses = [status_of(find(cluster, f"{target.what}/{target.name}")) for target in targets]
            verdict = _verdict(statuses)
            if verdict is not Verdict.READY:
                show(statuses)
        except UnreachableError as error:
            verdict, failure = Verdict.UNREACHABLE, error
        now = time.monotonic()
        since = since if verdict is before else now
        if now - since < verdict.value:
            continue
        if verdict is Verdict.READY:
            show(statuses)
            return statuses
        raise failure or _failure(statuses, verdict)
    names = ", ".join(map(str, targets))
    raise DeadlineError(f"{names}: not ready within a day; workergroups status says what they wait for")


def _verdict(statuses: Sequence[Status]) -> Verdict:
    if all(status.is_ready for status in statuses):
        return Verdict.READY
    if any(status.is_hopeless for status in statuses):
        return Verdict.HOPELESS
    return Verdict.WAITING if all(status.is_current for status in statuses) else Verdict.UNSEEN


def _failure(statuses: Sequence[Status], verdict: Verdict) -> ClientError:
    if verdict is Verdict.HOPELESS:
        (first, *_) = [status for status in statuses if status.is_hopeless]
        return CannotBeReadyError(f"{first.what} {first.name} will not become ready: {why(first)}")
    return DeadlineError(
        f"the operator has not seen what was applied within {verdict.value:g} s: check that it is installed and runs: "
        f"helm list --all-namespaces; kubectl get pods -n workergroups-system"
    )


def why(status: Status) -> str:
    """What it waits for, or why it waits in vain, in one line."""
    summary = status.summary
    if summary is None or not status.is_current:
        return "the operator has not seen it yet"
    return f"{summary.reason}: {summary.message}"


def until(status: Status) -> str:
    """How long it is going to wait, in words; empty if it does not wait."""
    if status.deadline is None:
        return ""
    left = (status.deadline - datetime.now(timezone.utc)).total_seconds()
    return f"{left:.0f} s left" if left > 0 else "its deadline has passed"
