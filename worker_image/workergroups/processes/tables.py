"""What the programs in the pods answer, row by row: values that JSON can carry."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from hashlib import sha256
from typing import Any, NamedTuple

from workergroups.debugger.pauses import Pause

RANK_SECONDS = "workergroups_rank_seconds"
"""The counter of what ranks spend seconds on; Prometheus gets it as ``ray_workergroups_rank_seconds_total``."""
IDLE, WAITING, COLLECTIVE, RUNNING = ACTIVITIES = ("Idle", "Waiting", "Collective", "Running")


class NodeProcess(NamedTuple):
    """A worker process of a node."""

    pid: int
    worker_id: str
    doing: str
    """Ray's title of the process: ``Class.method``, ``Class`` between calls, or the function of a plain task.

    Of a subprocess, its own title, or its program.
    """
    parent: int = 0
    """The process id of the worker that has started this subprocess, itself or by others; 0 for a worker."""


class ActorRow(NamedTuple):
    """An actor that is not dead."""

    actor_id: str
    class_name: str
    name: str
    namespace: str
    worker_id: str
    """Empty until its constructor has returned."""
    job_id: str
    """Ray's id of the job whose program has created it."""


class DeadActorRow(NamedTuple):
    """An actor that is dead."""

    actor: ActorRow
    job: str
    """The id of the submitted job; Ray's own id for a program that was not submitted."""
    pod: str
    """Empty if Ray no longer knows its node."""
    pid: int
    """0 for an actor that never had a process."""
    died: float
    """In seconds since the epoch, by the clock of the head."""
    reason: str
    message: str


class DriverRow(NamedTuple):
    """A driver that is connected."""

    job_id: str
    submission_id: str
    """The id of the job that was submitted; empty for other programs."""
    pod: str
    pid: int


class TaskRow(NamedTuple):
    """A task that has not ended: a call of an actor's method, its construction, a plain task, or a driver."""

    task_id: str
    parent_id: str
    """The task that has called it; a driver is a task, too."""
    actor_id: str
    """Empty for a plain task and for a driver."""
    worker_id: str
    """The process that runs it; empty before it runs, and while an actor is constructed."""
    name: str
    """``Class.method``, or the function of a plain task; empty for a driver."""
    state: str
    """``running``, ``waiting for arguments`` or ``queued``; with ``, its caller has ended``, nobody waits for it."""
    seconds: float
    """How long it has been in that state, by the nodes' clocks."""
    job_id: str
    """The Ray job of its caller."""


class PauseRow(NamedTuple):
    """A process that is paused for a debugger."""

    process_id: str
    """The id of its actor, of the worker of a plain task, or of the job whose driver it is."""
    pod: str
    pause: Pause


class RankSecondsRow(NamedTuple):
    """What a living rank has spent seconds on since its process began to count them."""

    name: str
    """The name of its actor; see `RankName`."""
    activity: str
    """One of `ACTIVITIES`. Empty if nothing is counted."""
    method: str
    seconds: float


class DeviceRow(NamedTuple):
    """A device of a node, as Ray's node agent sees it."""

    pod: str
    number: str
    """Its index on the node."""
    product: str
    utilization: float | None
    """From 0 to 1; ``None`` if the driver does not report it, as for a MIG device."""
    used_bytes: float | None
    """``None`` likewise."""
    total_bytes: float | None


class UsageTables(NamedTuple):
    """What the ranks and the devices of a Ray cluster are used for."""

    seconds: tuple[RankSecondsRow, ...]
    being_created: tuple[str, ...]
    """The names of the ranks whose constructor has not returned: they have no seconds."""
    devices: tuple[DeviceRow, ...]
    troubles: tuple[str, ...]
    """Which pods lack metrics, and why."""

    @classmethod
    def from_json(cls, said: Any) -> UsageTables:
        """Return the tables that were written as JSON.

        Raises:
            TypeError: The program in the pod is of another version.
            ValueError: Likewise.
        """
        seconds, being_created, devices, troubles = said
        return cls(
            tuple(RankSecondsRow(*row) for row in seconds),
            tuple(being_created),
            tuple(DeviceRow(*row) for row in devices),
            tuple(troubles),
        )


class GcsTables(NamedTuple):
    """What Ray's control service (the GCS) knows of the programs on the cluster."""

    actors: tuple[ActorRow, ...]
    drivers: tuple[DriverRow, ...]
    tasks: tuple[TaskRow, ...]
    pauses: tuple[PauseRow, ...]

    def to_json(self) -> Any:
        """Return what JSON can carry."""
        return [*self[:3], [(row.process_id, row.pod, asdict(row.pause)) for row in self.pauses]]

    @classmethod
    def from_json(cls, said: Any) -> GcsTables:
        """Return the tables that were written as JSON.

        Raises:
            TypeError: The program in the pod is of another version.
            ValueError: Likewise.
        """
        actors, drivers, tasks, pauses = said
        return cls(
            tuple(ActorRow(*row) for row in actors),
            tuple(DriverRow(*row) for row in drivers),
            tuple(TaskRow(*row) for row in tasks),
            tuple(PauseRow(process_id, pod, Pause(**pause)) for process_id, pod, pause in pauses),
        )


def digest(pauses: Iterable[PauseRow]) -> str:
    """Return a value that changes when one of the pauses begins, ends or gets a debugger."""
    return sha256(repr(sorted(pauses, key=lambda row: row.process_id)).encode()).hexdigest()[:16]
