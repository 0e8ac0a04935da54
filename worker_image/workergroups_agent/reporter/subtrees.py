"""What the reporter writes into the custom resources' status: pure functions of the reports and what it knows.

Names and UIDs come from the plan, and reports are looked up by them. So a report on any other object has no effect.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from workergroups_agent.exchange import Reports
from workergroups_agent.reporter.known import CodeFiles, Known
from workergroups_agent.reporter.prepare import Missing, is_planned, read_launch
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP, Kind
from workergroups_api.plan import ClusterPlan, PlannedGroup, PlannedPool
from workergroups_api.report import GroupReport, PoolReport

_UNREPORTED = "the agent's observer does not report on it"
_UNREAD = "the agent has not been able to read it from the API server"


@dataclass(frozen=True)
class StatusSubtree:
    """What one object's status should hold in the agent's field, `reservation` of a pool or `ranks` of a group.

    It is made from what the observer reports (`exchange.ReportedPool`, `exchange.ReportedGroup`), and also names the
    kind and the object, which only the plan is trusted to name.
    """

    kind: Kind
    name: str
    uid: str
    report: Mapping[str, Any]


def subtrees(reports: Reports, known: Known) -> dict[str, StatusSubtree]:
    """Return the subtree of each planned object, by UID. An unreported object gets none: its status stays as it is."""
    return {subtree.uid: subtree for subtree in (*_pool_subtrees(reports, known), *_group_subtrees(reports, known))}


def unreported(reports: Reports, known: Known) -> dict[str, str]:
    """Return why the reports do not settle what is true of a planned object, by UID."""
    if known.plan is None:
        return {}
    why = f"{_UNREPORTED}: {known.trouble}" if known.trouble else _UNREPORTED
    pools = {pool.uid: why for pool in known.plan.pools if _of_pool(pool, reports) is None}
    groups = {group.uid: why for group in known.plan.groups if _of_group(group, reports) is None}
    unread = {group.uid: _UNREAD for group in known.plan.groups if group.name not in known.groups}
    return pools | groups | unread


def count_unplanned(reports: Reports, known: Known) -> int:
    """Return how many reports are about nothing that is planned."""
    plan = known.plan or ClusterPlan(cluster="")
    planned = {pool.uid for pool in plan.pools} | {group.uid for group in plan.groups}
    reported = {pool.uid for pool in reports.pools.values()} | {group.uid for group in reports.groups.values()}
    return len(reported - planned)


def _pool_subtrees(reports: Reports, known: Known) -> Iterator[StatusSubtree]:
    for pool in known.plan.pools if known.plan else ():
        report = _of_pool(pool, reports)
        if report is not None:
            yield StatusSubtree(RESOURCE_POOL, pool.name, pool.uid, report.to_json())


def _group_subtrees(reports: Reports, known: Known) -> Iterator[StatusSubtree]:
    for group in known.plan.groups if known.plan else ():
        report = _group_report(group, reports, known)
        if report is not None:
            yield StatusSubtree(WORKER_GROUP, group.name, group.uid, report.to_json())


def _of_pool(pool: PlannedPool, reports: Reports) -> PoolReport | None:
    found = reports.pools.get(pool.name)
    return found.report if found is not None and found.uid == pool.uid else None


def _of_group(group: PlannedGroup, reports: Reports) -> GroupReport | None:
    found = reports.groups.get(group.name)
    return found.report if found is not None and found.uid == group.uid else None


def _group_report(planned: PlannedGroup, reports: Reports, known: Known) -> GroupReport | None:
    """Return the observer's report, or else the written one, with the digest of the current code."""
    if planned.name not in known.groups:
        return None  # Of its code nothing is known either.
    written = _written(planned, known)
    reported = _of_group(planned, reports)
    base = written if reported is None else reported
    code = _code_digest(planned, known, written.code if written else None)
    if base is None:
        # The operator waits for the digest before it plans the group's ranks.
        return None if code is None else GroupReport(code=code)
    return base.model_copy(update={"code": code})


def _written(planned: PlannedGroup, known: Known) -> GroupReport | None:
    group = known.groups[planned.name]
    if not isinstance(group, dict) or not is_planned(planned, group):
        return None
    status = group.get("status")
    try:
        return GroupReport.model_validate(status["ranks"]) if isinstance(status, dict) and "ranks" in status else None
    except ValidationError:
        return None


def _code_digest(planned: PlannedGroup, known: Known, before: str | None) -> str | None:
    """Of the code as it is now; as long as that is not known, of the code as it was."""
    try:
        name = read_launch(planned, known.groups[planned.name]).config_map
    except Missing:
        return before
    if name is None:
        return None
    if name not in known.code:
        return before
    found = known.code[name]
    if found is None:
        return None
    return found.digest if isinstance(found, CodeFiles) else before
