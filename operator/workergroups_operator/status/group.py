"""A group's conditions: PoolsReady, RanksCreated, RanksReady, and Ready that sums them up."""

from collections.abc import Mapping

from workergroups_api.conditions import Finding
from workergroups_api.report import GroupReport
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.policy.seating import Refusal
from workergroups_operator.status.situation import Conclusion, Situation, conclude

_RECREATE = "to try again, delete the WorkerGroup and create it again"


def group_conditions(group: WorkerGroup, situation: Situation, pools: Mapping[str, Finding]) -> Conclusion:
    """What is true of the group."""
    report = _current_report(group)
    total = world_size(group, situation) or 0
    chain = (
        _pools_ready(group, situation, pools),
        _ranks_created(report, total),
        _ranks_ready(report, total),
    )
    return conclude(group, group.status.conditions, chain, group.spec.start_deadline_seconds, situation.now)


def world_size(group: WorkerGroup, situation: Situation) -> int | None:
    """How many ranks the group has, None while it has no seats."""
    seats = situation.seating[group.name]
    return None if isinstance(seats, Refusal) else sum(part.count for part in seats)


def _current_report(group: WorkerGroup) -> GroupReport:
    report = group.status.ranks
    return report if report and report.observed_generation == group.generation else GroupReport()


def _pools_ready(group: WorkerGroup, situation: Situation, pools: Mapping[str, Finding]) -> Finding:
    seats = situation.seating[group.name]
    if isinstance(seats, Refusal):
        return Finding(type="PoolsReady", status="False", reason=seats.reason, message=seats.message)
    for part in seats:
        weakest = pools[part.pool]
        if weakest.status != "True":
            message = f"pool {part.pool}: {weakest.message}"
            return Finding(type="PoolsReady", status=weakest.status, reason="PoolNotReady", message=message)
    names = ", ".join(part.pool for part in seats)
    return Finding(type="PoolsReady", status="True", reason="PoolsReady", message=f"reserved: {names}")


def _ranks_created(report: GroupReport, total: int) -> Finding:
    count = f"{report.created} of {total} ranks created"
    if report.state == "LaunchFailed":
        message = f"{report.message}; {_RECREATE}"
        return Finding(type="RanksCreated", status="False", reason="LaunchFailed", message=message, final=True)
    if report.state == "Launched" or (total and report.created == total):
        return Finding(type="RanksCreated", status="True", reason="RanksCreated", message=count)
    message = f"{count}: {report.message}" if report.message else count
    return Finding(type="RanksCreated", status="False", reason=report.state, message=message)


def _ranks_ready(report: GroupReport, total: int) -> Finding:
    count = f"{report.ready_count} of {total} ranks ready"
    if report.failures:
        first = report.failures[0]
        others = f" (and {len(report.failures) - 1} more)" if len(report.failures) > 1 else ""
        where = f" in pod {first.pod}" if first.pod else ""
        message = f"rank {first.rank}{where}{others}: {first.message}; {count}; {_RECREATE}"
        return Finding(type="RanksReady", status="False", reason=first.reason, message=message, final=True)
    if total and report.ready_count == total:
        return Finding(type="RanksReady", status="True", reason="RanksReady", message=count)
    return Finding(type="RanksReady", status="False", reason="RanksStarting", message=count)
