"""The directory that executor and reporter share: orders one way, reports the other, each a file written at once."""

import json
import os
from pathlib import Path
from typing import Any

from workergroups_api.plan import Orders, Reports

POLL_SECONDS = 0.1


class Exchange:
    """Reads and writes both files; who polls asks for `*_stamp`, which changes with each write."""

    def __init__(self, directory: Path) -> None:
        self._orders = directory / "orders.json"
        self._reports = directory / "reports.json"

    @classmethod
    def from_environment(cls) -> "Exchange":
        """The directory that the operator mounts into both containers."""
        return cls(Path(os.environ["WORKERGROUPS_EXCHANGE"]))

    def write_orders(self, orders: Orders) -> None:
        """What the executor is to do."""
        _write(self._orders, orders.to_json())

    def read_orders(self) -> Orders | None:
        """None before the reporter has written any."""
        raw = _read(self._orders)
        return None if raw is None else Orders.model_validate(raw)

    def orders_stamp(self) -> int:
        """Changes with each write; 0 before the first."""
        return _stamp(self._orders)

    def write_reports(self, reports: Reports) -> None:
        """What the executor sees in Ray. The file's existence is the agent's readiness."""
        _write(self._reports, reports.to_json())

    def read_reports(self) -> Reports | None:
        """None while the executor is not connected to Ray."""
        raw = _read(self._reports)
        return None if raw is None else Reports.model_validate(raw)

    def reports_stamp(self) -> int:
        """Changes with each write; 0 while there are none."""
        return _stamp(self._reports)

    def withdraw_reports(self) -> None:
        """The executor is not connected to Ray (any more)."""
        self._reports.unlink(missing_ok=True)


def _write(path: Path, value: dict[str, Any]) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(value))
    draft.replace(path)


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None


def _stamp(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
