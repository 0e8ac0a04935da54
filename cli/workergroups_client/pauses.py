"""Ranks that are paused for a debugger, according to the status of their group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workergroups_api.vocabulary import PAUSED, ConditionType

from .names import Target
from .reading import current_report, group_status

if TYPE_CHECKING:
    from workergroups_api.report import RankPause


def pauses_of(group: Target) -> list[RankPause]:
    """Return the pauses of the present incarnation, by rank; the status has the first 64 of them.

    The agent's report counts only while RanksReady confirms it: when the Ray cluster is lost, the report stays in the
    status for a while.
    """
    status = group_status(group)
    report = current_report(status)
    confirming = {*PAUSED, *(failure.reason for failure in report.failures)}
    if not any(each.type == ConditionType.RANKS_READY and each.reason in confirming for each in status.conditions):
        return []
    return sorted(report.pauses, key=lambda pause: pause.rank)
