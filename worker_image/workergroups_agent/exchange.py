"""The directory that executor and reporter share: plan and launches one way, reports and a pulse the other.

Each file is replaced as a whole, and each group's launch is a file of its own: one that cannot be written hurts no
other.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from workergroups_agent.last_lines import DIRECTORY, LastLines
from workergroups_api.conditions import Explanation
from workergroups_api.launch import Launch
from workergroups_api.model import ApiModel
from workergroups_api.plan import ClusterPlan
from workergroups_api.report import GroupReport, PoolReport

POLL_SECONDS = 0.1

# Changes with each write of a file.
Stamp = tuple[int, int]


class PreparedLaunch(ApiModel):
    """What a planned group is launched from, or else why that is not there."""

    uid: str
    revision: str | None = None
    launch: Launch | None = None
    # Files of the code by name; None if the class is in the image.
    files: dict[str, str] | None = None
    missing: Explanation | None = None


class PoolEntry(ApiModel):
    """The report on one pool, by the UID of its object."""

    uid: str
    report: PoolReport


class GroupEntry(ApiModel):
    """The report on one group, by the UID of its object."""

    uid: str
    report: GroupReport


class Reports(ApiModel):
    """All that the executor says, by name."""

    session: str | None = None
    pools: Mapping[str, PoolEntry] = Field(default_factory=dict)
    groups: Mapping[str, GroupEntry] = Field(default_factory=dict)


class Pulse(ApiModel):
    """Written after each successful look at Ray: whoever sees it change knows that the executor looked since."""

    session: str
    count: int


class Exchange:
    """Reads and writes the files; who polls asks for `*_stamp`, which is None while there is no file."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._plan = directory / "plan.json"
        self._reports = directory / "reports.json"
        self._pulse = directory / "pulse"
        self.last_lines = LastLines(directory / DIRECTORY)
        self._beats = 0

    @classmethod
    def from_environment(cls) -> "Exchange":
        """The directory that the operator mounts into both containers."""
        return cls(Path(os.environ["WORKERGROUPS_EXCHANGE"]))

    def write_plan(self, plan: ClusterPlan) -> None:
        """What is to exist in the Ray cluster."""
        _write(self._plan, plan)

    def read_plan(self) -> ClusterPlan | None:
        """None before the reporter has written one."""
        raw = _read(self._plan)
        return None if raw is None else ClusterPlan.model_validate(raw)

    def plan_stamp(self) -> Stamp | None:
        """Changes with each write."""
        return _stamp(self._plan)

    def write_launch(self, prepared: PreparedLaunch) -> None:
        """What one group is launched from.

        Raises:
            OSError: There is no room.
            ValueError: No file can hold what the user wrote; it is nested too deeply.
        """
        _write(self._launch(prepared.uid), prepared)

    def read_launch(self, uid: str) -> PreparedLaunch | None:
        """None before the reporter has written one."""
        raw = _read(self._launch(uid))
        return None if raw is None else PreparedLaunch.model_validate(raw)

    def launch_stamp(self, uid: str) -> Stamp | None:
        """Changes with each write."""
        return _stamp(self._launch(uid))

    def remove_launches_but(self, uids: set[str]) -> None:
        """Keep the launches of these groups only."""
        kept = {self._launch(uid).name for uid in uids}
        for path in self._directory.glob("launch-*"):
            if path.name not in kept:
                path.unlink(missing_ok=True)

    def _launch(self, uid: str) -> Path:
        return self._directory / f"launch-{uid}.json"

    def write_reports(self, reports: Reports) -> None:
        """What the executor sees in Ray."""
        _write(self._reports, reports)

    def read_reports(self) -> Reports | None:
        """None before the executor has looked at Ray."""
        raw = _read(self._reports)
        return None if raw is None else Reports.model_validate(raw)

    def reports_stamp(self) -> Stamp | None:
        """Changes with each write."""
        return _stamp(self._reports)

    def beat(self, session: str) -> None:
        """The executor has looked at Ray, and its reports are what it saw."""
        self._beats += 1
        _write(self._pulse, Pulse(session=session, count=self._beats))

    def read_pulse(self) -> Pulse | None:
        """None while the executor is not connected to Ray."""
        raw = _read(self._pulse)
        return None if raw is None else Pulse.model_validate(raw)

    def withdraw(self) -> None:
        """The executor is not connected to Ray (any more)."""
        self._pulse.unlink(missing_ok=True)
        self._reports.unlink(missing_ok=True)


def _write(path: Path, value: ApiModel) -> None:
    draft = path.with_suffix(".draft")
    try:
        # Half a surrogate pair is no UTF-8, but it can be escaped.
        draft.write_text(json.dumps(value.to_json()), encoding="ascii")
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="ascii"))
    except FileNotFoundError:
        return None


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_ino
