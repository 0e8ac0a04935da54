"""Ranks that are recreated alone, while the others of their incarnation keep running (`failurePolicy.restart: Rank`).

The birth of a rank is the number of the restart that created it. The plan has the births, and each report says which it
knows of. So a report of a death that was answered already counts no second time.
"""

from collections.abc import Collection, Mapping

from workergroups_api.plan import MAX_BIRTHS
from workergroups_api.ranges import numbers, ranges
from workergroups_api.report import GroupReport
from workergroups_api.vocabulary import LaunchState

# Rank -> with which restart of the group it was last created alone.
Births = Mapping[int, int]
NO_BIRTHS: Births = {}


def births_after(births: Births, failed: Collection[int], world_size: int, number: int) -> Births | None:
    """Return the births once the failed ranks are recreated alone by the restart of this number.

    None if they cannot be: no rank is left that would keep what it has in memory, or more have failed than the plan has
    room for. The births of the ranks that were recreated longest ago are forgotten.
    """
    if not failed or len(failed) >= min(world_size, MAX_BIRTHS + 1):
        return None
    others = sorted((birth, rank) for rank, birth in births.items() if rank not in failed)
    kept = others[max(0, len(others) + len(failed) - MAX_BIRTHS) :]
    return {rank: birth for birth, rank in kept} | dict.fromkeys(failed, number)


def present_report(report: GroupReport, births: Births) -> GroupReport:
    """Return what a report says of the ranks that there should be: nothing about those that were recreated since."""
    gone = _born_after(births, report.birth)
    hang = report.hang
    if hang is not None and (recreated := _born_after(births, hang.birth)) and recreated >= set(numbers(hang.ranks)):
        hang = None
    if not gone:
        return report if hang is report.hang else report.model_copy(update={"hang": hang})
    ready = set(numbers(report.ready)) - gone
    is_launched = report.state == LaunchState.LAUNCHED
    return report.model_copy(
        update={
            "state": LaunchState.LAUNCHING.value if is_launched else report.state,
            "created": max(0, report.created - len(gone)),
            "ready_count": len(ready),
            "ready": ranges(ready),
            "failed": ranges(set(numbers(report.failed)) - gone),
            "failures": tuple(each for each in report.failures if each.rank not in gone),
            "paused": ranges(set(numbers(report.paused)) - gone),
            "pauses": tuple(each for each in report.pauses if each.rank not in gone),
            "hang": hang,
        }
    )


def _born_after(births: Births, known: int | None) -> set[int]:
    return {rank for rank, birth in births.items() if birth > (known or 0)}
