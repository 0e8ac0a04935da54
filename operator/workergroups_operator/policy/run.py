"""The run of a group that calls a method on its ranks: since when, whether it has ended, and when the group goes.

A run is of one spec: another spec, or `workergroups restart`, begins another run. The content of the code's ConfigMap
is not part of that: many groups may share it, and those that are complete must not run again.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from workergroups_api.conditions import Condition, Explanation, find
from workergroups_api.run import RunStatus
from workergroups_api.vocabulary import ConditionType, Reason
from workergroups_api.worker_group import WorkerGroup, WorkerGroupSpec
from workergroups_operator.observed import Observed
from workergroups_operator.policy.incarnation import GroupIncarnation, last_incarnation


def present_run(
    spec: WorkerGroupSpec, last: GroupIncarnation | None, asked: str, now: datetime, *, has_returned: bool
) -> RunStatus:
    """Return the run of the present spec, which ends now if it has returned on all ranks, or takes too long.

    Args:
        spec: The group's spec.
        last: The last incarnation.
        asked: The digest of what the spec asks for.
        now: The present time.
        has_returned: Whether the method has returned on all ranks of the last incarnation, as far as is known.
    """
    before = last.run if last is not None else None
    run = before if before is not None and before.revision == asked else RunStatus(revision=asked)
    if run is not before or run.reason is not None:
        return run
    if has_returned:
        return _ended(run, Reason.COMPLETE, now)
    deadline = deadline_of(spec, run)
    return _ended(run, Reason.DEADLINE_EXCEEDED, now) if deadline is not None and now >= deadline else run


def deadline_of(spec: WorkerGroupSpec, run: RunStatus) -> datetime | None:
    """Return until when the run must be complete; None if it may take any time, or has not started, or has ended."""
    if run.start_time is None or run.reason is not None or spec.active_deadline_seconds is None:
        return None
    return run.start_time + timedelta(seconds=spec.active_deadline_seconds)


def started(run: RunStatus | None, session: str | None, now: datetime) -> RunStatus | None:
    """Return the run with its start: the agent is asked for the ranks as soon as there is a Ray session."""
    if run is None or run.start_time is not None or session is None:
        return run
    return run.model_copy(update={"start_time": now.replace(microsecond=0)})


def how_it_ended(spec: WorkerGroupSpec, run: RunStatus | None, incarnation: int) -> Explanation | None:
    """Explain why the group has no ranks any more; None if its run has not ended."""
    if run is None or run.reason is None or spec.run is None:
        return None
    again = "to run it again, change the spec, or use workergroups restart"
    if run.reason == Reason.COMPLETE:
        what = f"{spec.run.method} has returned on all ranks of incarnation {incarnation}"
    else:
        start, end = run.start_time, run.end_time
        seconds = f" {(end - start).total_seconds():.0f} s" if start and end else ""
        what = f"{spec.run.method} has not returned on all ranks{seconds} after they were first asked for"
        what += ", which is longer than spec.activeDeadlineSeconds allowed"
    return Explanation(run.reason, f"{what}; the ranks end, and other groups can use their bundles; {again}")


def has_ended(group: WorkerGroup, observed: Observed) -> bool:
    """Return whether the run of the group's present spec has ended, as far as status and plan say."""
    last = last_incarnation(group.status, observed.planned(group.uid))
    run = last.run if last is not None else None
    return run is not None and run.reason is not None and run.revision == observed.run_revisions[group.name]


def expires_at(spec: WorkerGroupSpec, before: Sequence[Condition], concluded: Sequence[Condition]) -> datetime | None:
    """Return when a finished group must be deleted; None if it must stay, or has not finished.

    Its status must have told that it is Complete or Failed, and this must still be so.
    """
    if spec.run is None or spec.ttl_seconds_after_finished is None:
        return None
    for type_ in (ConditionType.COMPLETE, ConditionType.FAILED):
        told, is_so = find(before, type_), find(concluded, type_)
        if told is not None and is_so is not None and told.status == is_so.status == "True":
            return is_so.last_transition_time + timedelta(seconds=spec.ttl_seconds_after_finished)
    return None


def _ended(run: RunStatus, reason: Reason, now: datetime) -> RunStatus:
    return run.model_copy(update={"reason": str(reason), "end_time": now.replace(microsecond=0)})
