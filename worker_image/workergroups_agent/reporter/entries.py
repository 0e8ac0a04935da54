"""What the reporter writes into the custom resources' status: a pure function of the reports and what it knows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from workergroups_agent.exchange import Reports
from workergroups_agent.reporter.known import CodeFiles, Known
from workergroups_agent.reporter.prepare import Missing, is_planned, read_launch
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP, Kind
from workergroups_api.plan import PlannedGroup
from workergroups_api.report import GroupReport

# Kind and name.
Identity = tuple[Kind, str]

SUBTREES = {RESOURCE_POOL: "reservation", WORKER_GROUP: "ranks"}


@dataclass(frozen=True)
class Entry:
    """The agent's subtree of one object's status."""

    uid: str
    report: Mapping[str, Any]


def entries(reports: Reports, known: Known) -> dict[Identity, Entry]:
    """Each pool's and group's entry. Of what nothing is reported there is none, so that what was written stays."""
    found = {(RESOURCE_POOL, name): Entry(pool.uid, pool.report.to_json()) for name, pool in reports.pools.items()}
    for planned in known.plan.groups if known.plan else ():
        report = _group_report(planned, reports, known)
        if report is not None:
            found[WORKER_GROUP, planned.name] = Entry(planned.uid, report.to_json())
    return found


def _group_report(planned: PlannedGroup, reports: Reports, known: Known) -> GroupReport | None:
    """The executor's report, or else the one that was written before, with the digest of the code as it is now."""
    if planned.name not in known.groups:
        return None  # Of its code nothing is known either.
    written = _written(planned, known)
    reported = reports.groups.get(planned.name)
    base = reported.report if reported is not None and reported.uid == planned.uid else written
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
