"""Wait until pools and groups are ready, and show how far they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import typer
from rich.live import Live
from rich.table import Table
from rich.text import Text

from workergroups_client import Cluster
from workergroups_client.errors import CannotBeReadyError, DeadlineError
from workergroups_client.objects.names import Target
from workergroups_client.objects.readiness import old, until, wait_until_ready, why, why_and_until
from workergroups_client.objects.status import Status
from workergroups_common.text import without_controls

from .exit_codes import INTERRUPTED
from .output import err, note


def show_until_ready(cluster: Cluster, targets: Sequence[Target], seconds: float) -> None:
    """Wait until the objects are ready, and note what is older than their specs.

    On Ctrl-C, say that they stay as they are.

    Raises:
        CannotBeReadyError: Waiting does not help one of them.
        DeadlineError: They are not ready in time.
    """
    try:
        with _Progress() as progress:
            statuses = wait_until_ready(cluster, targets, progress.show, seconds)
    except (CannotBeReadyError, DeadlineError):
        # What is old may be what keeps the others from becoming ready.
        note_old(progress.latest)
        raise
    except KeyboardInterrupt:
        note(f"{listed(targets)} continue on the cluster; see them: workergroups status {cluster.options}")
        raise typer.Exit(INTERRUPTED) from None
    note_old(statuses)


def note_old(statuses: Iterable[Status]) -> None:
    """Note of each object what runs that its spec no longer asks for."""
    for status in statuses:
        if said := old(status):
            note(f"{status.what} {status.name}: {said}")


def listed(targets: Sequence[Target]) -> str:
    """Return the names of the objects, with commas between them."""
    return ", ".join(map(str, targets))


class _Progress:
    """Shows a line for each object, which changes, on a terminal; elsewhere a line for each change."""

    def __init__(self) -> None:
        self._live = Live(console=err, transient=False) if err.is_interactive else None
        self._told: dict[str, tuple[str, bool]] = {}
        self.latest: Sequence[Status] = ()

    def show(self, statuses: Sequence[Status]) -> None:
        self.latest = statuses
        if self._live is not None:
            self._live.update(_grid(statuses))
            return
        for status in statuses:
            key, told = f"{status.what} {status.name}", (_state(status, why), status.is_late)
            if self._told.get(key) != told:
                self._told[key] = told
                note(f"{key}: {_state(status, why_and_until)}")

    def __enter__(self) -> _Progress:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()


def _grid(statuses: Sequence[Status]) -> Table:
    grid = Table.grid(padding=(0, 2))
    for status in statuses:
        count = f"{status.ready}/{status.wanted}" if status.wanted else ""
        state = Text(without_controls(_state(status, why)), "green" if status.is_ready else "")
        grid.add_row(f"{status.what} {status.name}", count, state, Text(without_controls(until(status)), "dim"))
    return grid


def _state(status: Status, told: Callable[[Status], str]) -> str:
    """Return in one word that it is ready or complete, or else what is told of it."""
    if status.is_complete:
        return "complete"
    return "ready" if status.is_ready else told(status)
