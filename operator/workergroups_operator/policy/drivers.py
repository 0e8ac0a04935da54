"""Which drivers a pool's Ray cluster has, and which it has lost with its head.

When the head comes back, nodes, bundles and ranks come back with it, and its drivers do not. Only the status of the
pool remembers that there were some.
"""

from datetime import datetime

from workergroups_api.pool_status import LostDrivers, PoolDrivers
from workergroups_api.report import PoolReport
from workergroups_operator.observed import Observed
from workergroups_operator.policy.agent_liveness import AgentLiveness


def drivers(
    before: PoolDrivers | None, report: PoolReport | None, *, is_over: bool, now: datetime
) -> PoolDrivers | None:
    """Return the drivers of a pool, and those that it has lost until another one connects.

    Args:
        before: The drivers according to the pool's status.
        report: What the agent reported last, of whatever session.
        is_over: Whether the session of the report, or else that of `before`, has ended.
        now: When this is decided.
    """
    last = _reported(report) or before
    if last is None:
        return None
    has_had_one = _has_had_one(before, report)
    lost_before = None if before is None or has_had_one else before.lost
    if is_over:
        is_known = before is not None and before.session == last.session and before.lost is not None
        if is_known:
            return before
        return PoolDrivers(session=last.session, head=last.head, lost=_lost(last, now) or lost_before)
    if last.running or before is None or has_had_one:
        return last
    lost_now = _lost(before, now) if _is_of_another_head(before, last) else None
    return last.model_copy(update={"lost": lost_now or lost_before})


def session_of_drivers(before: PoolDrivers | None, report: PoolReport | None) -> str | None:
    """Return the latest Ray session whose drivers are known."""
    last = _reported(report) or before
    return last.session if last else None


def is_over(session: str | None, agent: AgentLiveness, observed: Observed) -> bool:
    """Return whether the session has ended, as far as is known: a session ends with the head's container."""
    if session is None:
        return False
    if agent.session is not None:
        return session != agent.session
    head, last = observed.agent.known or (None, None)
    return session == last and head != observed.head


def _reported(report: PoolReport | None) -> PoolDrivers | None:
    """Return what an agent reports; an older agent reports no drivers."""
    if report is None or report.drivers is None or report.session is None:
        return None
    return PoolDrivers(session=report.session, head=report.head, running=report.drivers, jobs=report.driver_jobs)


def _is_of_another_head(before: PoolDrivers, last: PoolDrivers) -> bool:
    """Return whether the head was lost in between; an older agent does not report which head it is."""
    return before.session != last.session or (None not in (before.head, last.head) and before.head != last.head)


def _has_had_one(before: PoolDrivers | None, report: PoolReport | None) -> bool:
    """Return whether a driver has come and gone that ended after those that were lost: a session may outlive a head."""
    if report is None or report.last_driver_end is None:
        return False
    return before is None or before.lost is None or report.last_driver_end > before.lost.time


def _lost(last: PoolDrivers, now: datetime) -> LostDrivers | None:
    if not last.running:
        return None
    return LostDrivers(count=last.running, jobs=last.jobs, time=now.replace(microsecond=0))
