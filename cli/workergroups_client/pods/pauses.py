"""Processes that are paused for a debugger: ranks of groups, and all others."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from workergroups.naming import RankName
from workergroups.processes import listing
from workergroups.processes.listing import Process, matches
from workergroups.processes.tables import GcsTables, PauseRow, digest

from ..api_server.cluster import Cluster
from ..api_server.tunnel import Tunnel
from ..errors import NotFoundError
from ..objects.names import GROUP, Target
from .pod_programs import ask_for_processes, understood
from .pods import head


@dataclass(frozen=True)
class PausedProcess:
    """A process that is paused for a debugger, or has one."""

    who: str
    """For people, such as ``rank 2``, ``actor TaskRunner`` or ``task fit``."""
    rank: int | None
    """``None`` for a process that is no rank."""
    job: str
    """The id of the job that it belongs to; a rank belongs to none."""
    pod: str
    """Empty if its node is gone."""
    where: str
    """File, line and function, and the exception if one was raised."""
    directory: str | None
    """The directory from which Python imported that file."""
    port: int | None
    """The port on the pod's loopback at which debugpy listens; ``None`` for the second or two until it does."""
    since: datetime
    """By the clock of the process's node."""
    attached: bool
    """Whether a debugger is attached."""


class Pauses:
    """The paused processes of a group, or of another target.

    Args:
        cluster: Where to look.
        on: A pool or group on the Ray cluster of the processes; if it is a group, only its ranks count.
        target: For a pool: ``job/ID``, ``actor/NAME``, ``actor/CLASS``, ``node/POD`` or ``all``.

    Raises:
        NotRunningError: The head of the Ray cluster is not running.
    """

    def __init__(self, cluster: Cluster, on: Target, target: str = "") -> None:
        self._cluster, self._on, self._target = cluster, on, target
        self._head = head(cluster, on)
        self._seen = ""

    @property
    def name(self) -> str:
        """What processes these are, for people."""
        return str(self._on) if self._on.what == GROUP else f"{self._target} on {self._on}"

    @property
    def noun(self) -> str:
        """``rank`` or ``process``."""
        return "rank" if self._on.what == GROUP else "process"

    def now(self) -> list[PausedProcess]:
        """Return the processes that are paused now, by rank or by their starts."""
        return self._look("")

    def changed(self) -> list[PausedProcess]:
        """Wait until a pause begins, ends or gets a debugger, 20 s at most; return the processes that are paused."""
        return self._look(self._seen)

    def tunnel(self, pause: PausedProcess, *, local_port: int = 0) -> Tunnel:
        """Open a port of this machine that leads to debugpy in a paused process.

        Args:
            pause: The process.
            local_port: A port of this machine; 0 for a free one.

        Raises:
            NotFoundError: debugpy does not listen there, or the pod is gone.
        """
        if pause.port is None:
            raise NotFoundError(f"debugpy does not listen in {pause.who}: its log says why")
        if not pause.pod:
            raise NotFoundError(f"the pod of {pause.who} is gone")
        return Tunnel(self._cluster, lambda: pause.pod, pause.port, local_port)

    def _look(self, seen: str) -> list[PausedProcess]:
        said = ask_for_processes(self._cluster, self._head, "in_gcs", *([seen] if seen else []))
        tables = understood(GcsTables.from_json, said)
        self._seen = digest(tables.pauses)
        found = [self._paused(process, row) for process, row in listing.paused(tables) if self._is_wanted(process)]
        return sorted(found, key=lambda pause: -1 if pause.rank is None else pause.rank)

    def _is_wanted(self, process: Process) -> bool:
        if self._on.what != GROUP:
            return matches(self._target, process)
        rank = RankName.parse(process.name)
        return rank is not None and rank.uid == self._on.uid

    def _paused(self, process: Process, row: PauseRow) -> PausedProcess:
        rank, pause = RankName.parse(process.name), row.pause
        return PausedProcess(
            who=f"rank {rank.rank}" if rank is not None and self._on.what == GROUP else str(process),
            rank=None if rank is None else rank.rank,
            job="" if rank is not None else process.job,
            pod=row.pod,
            where=pause.where,
            directory=pause.directory or None,
            port=pause.port or None,
            since=datetime.fromtimestamp(pause.since, timezone.utc),
            attached=pause.is_attached,
        )
