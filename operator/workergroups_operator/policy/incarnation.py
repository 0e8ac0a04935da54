"""Which incarnation of a group's ranks runs: a new number whenever all ranks are recreated, and only then.

An interrupted launch leads to a new incarnation too, after growing pauses and only a few times in a row. So do failed
ranks, as the group's failure policy says; or they alone are recreated, and the number stays.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum, auto
from typing import Any

from workergroups_api.failure_policy import RestartHistory
from workergroups_api.group_status import WorkerGroupStatus
from workergroups_api.plan import IncarnationRecord, PlannedBundles, PlannedGroup
from workergroups_api.report import GroupReport
from workergroups_api.retries import Retries
from workergroups_api.run import RunStatus
from workergroups_api.vocabulary import LaunchState
from workergroups_operator.policy.rank_failures import (
    NO_BIRTHS,
    NO_RESTARTS,
    Births,
    FailureResponse,
    is_outdated,
    restarted,
    stored,
)
from workergroups_operator.policy.retry import after_failure, begun, is_due, is_exhausted

FIRST = 1
NONE = Retries()


class LaunchOutcome(Enum):
    """How the launch of an incarnation ended, as far as is known."""

    UNKNOWN = auto()
    # It is under way, or all ranks were created.
    BEGUN = auto()
    # Every rank is ready.
    SUCCEEDED = auto()
    # It was interrupted, and some ranks are left.
    INTERRUPTED = auto()


@dataclass(frozen=True)
class GroupIncarnation:
    """One creation of a group's ranks; the library's `Incarnation` only identifies one."""

    number: int
    # Digest of what the ranks are made from, and of their bundles; None while the code is not known.
    revision: str | None = None
    # The Ray session in which the ranks run; None while there is none.
    session: str | None = None
    # The interrupted launches of this revision in this session.
    retries: Retries = NONE
    # Digest of the variables from Secrets and ConfigMaps; None if there are none, or while they are not known.
    environment: str | None = None
    # The group's restarts after failures, and whether this incarnation has failed.
    restarts: RestartHistory = NO_RESTARTS
    # The bundles of the ranks, in rank order.
    bundles: tuple[PlannedBundles, ...] = ()
    # The run of the method that `spec.run` names; None without one.
    run: RunStatus | None = None
    # The ranks that were recreated alone.
    births: Births = field(default_factory=dict)

    @classmethod
    def of(cls, number: int, record: IncarnationRecord) -> "GroupIncarnation":
        """Return the incarnation that status or plan record."""
        written = {name: getattr(record, name) for name in IncarnationRecord.model_fields}
        return cls(number, **{name: value for name, value in written.items() if value is not None})

    def recorded(self) -> dict[str, Any]:
        """Return the fields by which status and plan record it; None for what is not worth a line."""
        record = {name: getattr(self, name) for name in IncarnationRecord.model_fields}
        unset = {
            "retries": self.retries if self.retries.failures else None,
            "restarts": stored(self.restarts),
            "births": dict(self.births) or None,
        }
        return {"incarnation": self.number, **record, **unset}

    @property
    def world_size(self) -> int:
        """The number of its ranks."""
        return sum(part.count for part in self.bundles)


def launch_outcome(last: GroupIncarnation | None, report: GroupReport | None, world_size: int) -> LaunchOutcome:
    """Return how the launch of the last incarnation ended, according to the agent."""
    if last is None or report is None or report.incarnation != last.number:
        return LaunchOutcome.UNKNOWN
    if report.state == LaunchState.LAUNCH_INTERRUPTED:
        return LaunchOutcome.INTERRUPTED
    if 0 < world_size == report.ready_count and not is_outdated(report, last.births):
        return LaunchOutcome.SUCCEEDED
    has_begun = report.created or report.state in (LaunchState.LAUNCHING, LaunchState.LAUNCHED)
    return LaunchOutcome.BEGUN if has_begun else LaunchOutcome.UNKNOWN


def next_incarnation(
    last: GroupIncarnation | None,
    revision: str | None,
    session: str | None,
    environment: str | None,
    launch: LaunchOutcome,
    response: FailureResponse | None,
    now: datetime,
) -> GroupIncarnation:
    """Return the incarnation that must run, given the last one.

    If the code is gone, or the session is unknown for the moment, the ranks that run stay. If the environment has
    changed, they stay too; but if their launch has not begun, they begin with the present one.
    """
    if last is None:
        return GroupIncarnation(FIRST, revision, session, environment=environment)
    known = replace(
        last,
        revision=revision or last.revision,
        session=session or last.session,
        environment=last.environment or environment,
    )
    is_changed = _differ(last.revision, revision)
    is_new = begins_anyway(last, revision, session)
    if is_new or (launch is LaunchOutcome.UNKNOWN and _differ(last.environment, environment)):
        # A changed spec has not failed yet.
        kept = {"failed_at": None} | ({"recent": ()} if is_changed else {})
        restarts = last.restarts.model_copy(update=kept)
        return replace(_following(known, environment), retries=Retries(), restarts=restarts)
    if launch is LaunchOutcome.INTERRUPTED:
        return _after_interruption(known, environment, now)
    if response is not None:
        return _after_failure(known, environment, response, now)
    if launch is LaunchOutcome.SUCCEEDED:
        return replace(known, retries=Retries(), restarts=last.restarts.model_copy(update={"failed_at": None}))
    return known


def begins_anyway(last: GroupIncarnation, revision: str | None, session: str | None) -> bool:
    """Return whether the ranks are recreated because of a change, or are gone with an earlier Ray session."""
    return _differ(last.revision, revision) or _differ(last.session, session)


def why_new(before: WorkerGroupStatus, now: GroupIncarnation | None) -> str | None:
    """Return because of which change the incarnation of a status is replaced; None if it is not, or after a failure."""
    if before.incarnation is None or now is None or now.number == before.incarnation:
        return None
    what = f"incarnation {now.number} replaces incarnation {before.incarnation}"
    if _differ(before.revision, now.revision):
        return f"{what}: its spec, its code or its bundles have changed, or the group or its pool was restarted"
    if _differ(before.session, now.session):
        return f"{what}, which was for a Ray session that has ended"
    return None


def suspended_incarnation(last: GroupIncarnation | None, environment: str | None) -> GroupIncarnation:
    """Return the incarnation of a group that must have no ranks now: one that has not begun, and runs in no session.

    The ranks of the last one end, and never come back under its number.
    """
    if last is None:
        return GroupIncarnation(FIRST, environment=environment)
    number = last.number if last.session is None else last.number + 1
    restarts = last.restarts.model_copy(update={"failed_at": None})
    return GroupIncarnation(number, environment=environment, restarts=restarts)


def finished(last: GroupIncarnation, run: RunStatus) -> GroupIncarnation:
    """Return the incarnation of a group whose run has ended: the same, without session and bundles."""
    restarts = last.restarts.model_copy(update={"failed_at": None})
    return replace(last, session=None, bundles=(), retries=Retries(), restarts=restarts, run=run)


def after_finish(last: GroupIncarnation | None) -> GroupIncarnation | None:
    """Return the last incarnation of a group that must run; another one if the run of the last one has ended."""
    if last is None or not _has_ended(last):
        return last
    return GroupIncarnation(last.number + 1, restarts=last.restarts.model_copy(update={"recent": ()}))


def _has_ended(incarnation: GroupIncarnation) -> bool:
    return incarnation.run is not None and incarnation.run.reason is not None


def _differ(last: str | None, present: str | None) -> bool:
    """Return whether both are known, and different."""
    return None not in (last, present) and last != present


def _after_interruption(last: GroupIncarnation, environment: str | None, now: datetime) -> GroupIncarnation:
    is_counted = last.retries.next is not None or is_exhausted(last.retries)
    retries = last.retries if is_counted else after_failure(last.retries, now)
    if is_due(retries, now):
        return replace(_following(last, environment), retries=begun(retries))
    return replace(last, retries=retries)


def is_final(incarnation: GroupIncarnation, response: FailureResponse | None, before: PlannedGroup | None) -> bool:
    """Return whether the failed ranks of this incarnation stay as they are.

    Args:
        incarnation: The present one.
        response: What follows from its failure; None if nothing failed, or no report on it counts.
        before: The group in the last plan.
    """
    if incarnation.restarts.failed_at is None:
        return False
    if response is None:
        return before is not None and before.incarnation == incarnation.number and bool(before.is_final)
    return response.is_final


def _after_failure(
    last: GroupIncarnation, environment: str | None, response: FailureResponse, now: datetime
) -> GroupIncarnation:
    if not response.is_due(now):
        return replace(last, restarts=last.restarts.model_copy(update={"failed_at": response.failed_at}))
    restarts = restarted(last.restarts, response.policy, now, counts=response.counts)
    if response.births is not None:
        return replace(last, births=response.births, restarts=restarts)
    return replace(_following(last, environment), retries=Retries(), restarts=restarts)


def _following(last: GroupIncarnation, environment: str | None) -> GroupIncarnation:
    return replace(last, number=last.number + 1, environment=environment, births=NO_BIRTHS)


def last_incarnation(status: WorkerGroupStatus, planned: PlannedGroup | None) -> GroupIncarnation | None:
    """Return the last incarnation, which the group's status and the plan record; either may be out of date."""
    return latest(
        GroupIncarnation.of(status.incarnation, status) if status.incarnation else None,
        GroupIncarnation.of(planned.incarnation, planned) if planned else None,
    )


def latest(*candidates: GroupIncarnation | None) -> GroupIncarnation | None:
    """Return the most recent of several records of the last incarnation; the first of equals."""
    known = [candidate for candidate in candidates if candidate is not None]
    return max(known, key=_progress, default=None)


def _progress(each: GroupIncarnation) -> tuple[int, bool, bool, bool, bool, bool, int, bool, int, bool, bool]:
    waits = each.retries.next is not None
    known = (each.revision is not None, each.session is not None, each.environment is not None, bool(each.bundles))
    failed = each.restarts.failed_at is not None
    # One whose run has ended is in no session any more.
    has_ended, has_started = _has_ended(each), each.run is not None and each.run.start_time is not None
    return each.number, has_ended, *known, each.retries.failures, waits, each.restarts.count, failed, has_started
