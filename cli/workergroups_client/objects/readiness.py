"""Wait until pools and groups are ready, or cannot become ready."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from enum import Enum
from math import inf

from workergroups_api.vocabulary import Reason

from ..api_server.cluster import Cluster
from ..errors import CannotBeReadyError, ClientError, DeadlineError, NotSeenError, UnreachableError
from ..times import duration
from ..waiting import look_again
from .names import Target, find
from .status import Status, status_of

Show = Callable[[Sequence[Status]], None]


class Verdict(Enum):
    """What several statuses mean together; the value is for how many seconds they must agree before it counts.

    A status may be older than what was applied: the operator sees a change of a ConfigMap a moment later.
    """

    READY = 2.0
    HOPELESS = 5.0
    UNSEEN = 60.0
    UNREACHABLE = 120.0
    WAITING = inf


def wait_until_ready(cluster: Cluster, targets: Sequence[Target], show: Show, seconds: float) -> list[Status]:
    """Poll the statuses until all objects are ready, and show each of them: "ready" once it counts, "hopeless" never.

    A deadline of an object that passes does not end this: the operator keeps trying.

    Raises:
        CannotBeReadyError: Waiting does not help one of them.
        DeadlineError: They are not ready within `seconds`.
        NotSeenError: The operator has not seen them for a while.
        UnreachableError: The API server has not answered for a while.
    """
    verdict, since = Verdict.WAITING, 0.0
    statuses: list[Status] = []
    failure: ClientError | None = None
    for _ in look_again(seconds, pause=1):
        before, failure = verdict, None
        try:
            statuses = [status_of(find(cluster, f"{target.what}/{target.name}")) for target in targets]
            verdict = _verdict(statuses)
            if verdict not in (Verdict.READY, Verdict.HOPELESS):
                show(statuses)
        except UnreachableError as error:
            verdict, failure = Verdict.UNREACHABLE, error
        now = time.monotonic()
        since = since if verdict is before else now
        if now - since < verdict.value:
            continue
        if verdict is Verdict.READY:
            break
        raise failure or _failure(statuses, verdict)
    if verdict is not Verdict.READY:  # at the end, this counts at once
        raise failure or _too_late(targets, statuses, seconds)
    show(statuses)
    return statuses


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
    return NotSeenError(
        f"the operator has not seen what was applied within {verdict.value:g} s: check that it is installed, runs, and "
        f"serves this namespace, if its chart's value `namespaces` is set: helm list --all-namespaces; "
        f"kubectl get pods -n workergroups-system; helm get values workergroups -n workergroups-system"
    )


def _too_late(targets: Sequence[Target], statuses: Sequence[Status], seconds: float) -> DeadlineError:
    causes = [f"{status.what} {status.name}: {why_and_until(status)}" for status in statuses if not status.is_ready]
    late = "; ".join(causes or map(str, targets))
    return DeadlineError(
        f"not ready within {duration(seconds)}: {late}. Everything stays on the cluster: workergroups status shows its "
        f"progress"
    )


def why(status: Status) -> str:
    """Return in one line what the object waits for, or why it cannot become ready."""
    summary = status.summary
    if summary is None or not status.is_current:
        return "the operator has not seen it yet" if summary is None else "the operator has not seen this change yet"
    holders = f"; who holds them: workergroups status {status.name}" if _lacks_devices(status) else ""
    return f"{summary.reason}: {summary.message}{holders}"


def _lacks_devices(status: Status) -> bool:
    return status.is_pool and status.summary is not None and status.summary.reason == Reason.INSUFFICIENT_RESOURCES


def old(status: Status) -> str:
    """Return in one line what runs that the spec no longer asks for, or why that is unknown; else nothing."""
    found = status.what_is_old
    return f"{found.type}={found.status}: {found.message}" if found is not None else ""


def why_and_until(status: Status) -> str:
    """Return in one line what the object waits for, and how much time is left."""
    return f"{why(status)} ({left})" if (left := until(status)) else why(status)


def until(status: Status) -> str:
    """Return in words how much time is left, or that it is up; empty if the object does not wait."""
    if status.is_late:
        return f"{Reason.PROGRESS_DEADLINE_EXCEEDED}: the operator keeps trying"
    if status.deadline is None:
        return ""
    left = (status.deadline - datetime.now(timezone.utc)).total_seconds()
    return f"{duration(left)} left" if left > 0 else "its deadline has passed"
