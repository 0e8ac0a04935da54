"""The files that observer and reporter exchange: a directory for each direction, which one writes and the other reads.

The reporter writes `orders`: the plan, and one file for each group's launch, so that one unwritable launch does not
affect others. The observer writes `reports`: what it sees in Ray, a heartbeat, and the last lines of dead ranks. Each
file is replaced as a whole. Readers do not trust the content: see `files`.
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TypeVar
from urllib.parse import quote

from pydantic import Field, ValidationError

from workergroups_agent import records
from workergroups_agent.files import Stamp, UnreadableFile, read_file, stamp, write_file
from workergroups_agent.previous_logs import PreviousLogs
from workergroups_api.conditions import Explanation
from workergroups_api.launch import Launch
from workergroups_api.model import ApiModel
from workergroups_api.plan import ClusterPlan
from workergroups_api.report import GroupReport, PoolReport
from workergroups_api.vocabulary import HEARTBEAT_FILE, ORDERS, PLAN_FILE, REPORTS, REPORTS_FILE, Variable
from workergroups_common.bounded_json import Limits, RefusedJson, parse
from workergroups_common.text import plain

POLL_SECONDS = 0.1
# A launch holds a ConfigMap of up to 1 MiB; JSON needs six bytes for each byte that it escapes.
_LIMITS = Limits(size=8 * 1024 * 1024, depth=100, values=200_000)
# The heartbeat is read ten times a second.
_HEARTBEAT_LIMITS = Limits(size=4096, depth=2, values=20)

_Model = TypeVar("_Model", bound=ApiModel)


class PreparedLaunch(ApiModel):
    """What a planned group is launched from, or why it cannot be launched yet."""

    uid: str
    revision: str | None = None
    launch: Launch | None = None
    # Files of the code by path; None if the class is not in a ConfigMap.
    files: dict[str, str] | None = None
    missing: Explanation | None = None


class ReportedPool(ApiModel):
    """What the observer reports on one pool, and the UID of the object that it means."""

    uid: str
    report: PoolReport


class ReportedGroup(ApiModel):
    """What the observer reports on one group, and the UID of the object that it means."""

    uid: str
    report: GroupReport


class Reports(ApiModel):
    """Everything that the observer reports, by name."""

    session: str | None = None
    pools: Mapping[str, ReportedPool] = Field(default_factory=dict)
    groups: Mapping[str, ReportedGroup] = Field(default_factory=dict)


class ObserverHeartbeat(ApiModel):
    """Written after each successful look at Ray: if it changes, the observer has looked since."""

    session: Annotated[str, Field(max_length=256)]
    count: int
    # Digest of the reports that hold what the observer saw.
    reports: str | None = None


class Exchange:
    """Reads and writes the files. To poll a file, compare its `*_stamp`, which is None while there is no file.

    Methods that read raise UnreadableFile if the name belongs to something else, or if the content is wrong.
    """

    def __init__(self, directory: Path) -> None:
        self._orders = directory / ORDERS
        self._plan = self._orders / PLAN_FILE
        self._reports = directory / REPORTS / REPORTS_FILE
        self._heartbeat = directory / REPORTS / HEARTBEAT_FILE
        self.previous_logs = PreviousLogs(directory / REPORTS)
        self._beats = 0
        # Digest of the reports that were written or read last.
        self._digest: str | None = None

    @classmethod
    def from_environment(cls) -> "Exchange":
        """Return the exchange that the operator mounts into both containers."""
        return cls(Path(os.environ[Variable.EXCHANGE]))

    def write_plan(self, plan: ClusterPlan) -> None:
        """Write the plan: what should exist in the Ray cluster."""
        write_file(self._plan, records.dump(plan))

    def read_plan(self) -> ClusterPlan | None:
        """Return the plan, None before the reporter has written one."""
        return _decode(self._plan, ClusterPlan)

    def plan_stamp(self) -> Stamp | None:
        """Return what changes with each write."""
        return stamp(self._plan)

    def write_launch(self, prepared: PreparedLaunch) -> None:
        """Write what one group is launched from.

        Raises:
            OSError: There is no room.
            ValueError: The user's values are nested too deeply for a file.
        """
        write_file(self._launch(prepared.uid), records.dump(prepared))

    def read_launch(self, uid: str) -> PreparedLaunch | None:
        """Return what the group is launched from, None before the reporter has written it."""
        return _decode(self._launch(uid), PreparedLaunch)

    def launch_stamp(self, uid: str) -> Stamp | None:
        """Return what changes with each write."""
        return stamp(self._launch(uid))

    def remove_launches_but(self, uids: set[str]) -> None:
        """Keep the launches of these groups only."""
        kept = {self._launch(uid).name for uid in uids}
        for path in self._orders.glob("launch-*"):
            if path.name not in kept:
                path.unlink(missing_ok=True)

    def _launch(self, uid: str) -> Path:
        # Users may edit the plan, so no name in it may lead out of the directory.
        return self._orders / f"launch-{quote(uid, safe='', errors='replace')}.json"

    def write_reports(self, reports: Reports) -> None:
        """Report what the observer sees in Ray."""
        content = records.dump(reports)
        write_file(self._reports, content)
        self._digest = _digest(content)

    def read_reports(self) -> Reports | None:
        """Return what the observer sees in Ray, None while it is not connected."""
        self._digest = None
        content = read_file(self._reports, _LIMITS.size)
        if content is None:
            return None
        reports = _parse(self._reports, content, Reports, _LIMITS)
        self._digest = _digest(content)
        return reports

    def reports_stamp(self) -> Stamp | None:
        """Return what changes with each write."""
        return stamp(self._reports)

    def beat(self, session: str) -> None:
        """Write a heartbeat: the observer has looked at Ray, and the reports that it wrote last are what it saw."""
        self._beats += 1
        write_file(
            self._heartbeat, records.dump(ObserverHeartbeat(session=session, count=self._beats, reports=self._digest))
        )

    def read_heartbeat(self) -> ObserverHeartbeat | None:
        """Return the heartbeat, None while the observer is not connected to Ray."""
        return _decode(self._heartbeat, ObserverHeartbeat, _HEARTBEAT_LIMITS)

    def has_read_reports_of(self, heartbeat: ObserverHeartbeat) -> bool:
        """Return whether the heartbeat belongs to the reports that this process has read last."""
        return heartbeat.reports is not None and heartbeat.reports == self._digest

    def withdraw(self) -> None:
        """Remove reports and heartbeat: the observer is not, or no longer, connected to Ray."""
        self._heartbeat.unlink(missing_ok=True)
        self._reports.unlink(missing_ok=True)


def _decode(path: Path, model: type[_Model], limits: Limits = _LIMITS) -> _Model | None:
    content = read_file(path, limits.size)
    return None if content is None else _parse(path, content, model, limits)


def _parse(path: Path, content: bytes, model: type[_Model], limits: Limits) -> _Model:
    try:
        return model.model_validate(parse(content, limits))
    except RefusedJson as error:
        raise UnreadableFile(f"{path.name} cannot be read: {error}") from None
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = plain(".".join(map(str, first["loc"])), 100)
        raise UnreadableFile(f"{path.name} cannot be read: {where}: {first['msg']}") from None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
