"""The processes of a Ray cluster: which there are, the calls between them, and which of them a target names.

Processes and calls come from the tables of the pods. A target is ``job/ID``, ``actor/NAME``, ``node/POD`` or ``all``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from workergroups.naming import RankName

from .tables import ActorRow, DeadActorRow, DriverRow, GcsTables, NodeProcess, PauseRow

ALL = "all"
JOB, ACTOR, NODE = KINDS = ("job", "actor", "node")
DRIVER = "driver"
_CONSTRUCTOR = "__init__"


@dataclass(frozen=True)
class Process:
    """A process of a Ray program."""

    id: str
    """Ray's id of the worker process; of a driver, Ray's id of its job. Of a subprocess, with its process id."""
    kind: str
    """``driver``, ``actor`` or ``task``."""
    label: str
    """The actor's class, the task's function, or ``driver``."""
    name: str
    """The actor's name; empty if it has none."""
    namespace: str
    """The Ray namespace of an actor."""
    actor_id: str
    """Empty for all but actors."""
    job: str
    """The id of the submitted job; Ray's own id for a program that was not submitted, or empty."""
    pod: str
    pid: int
    """The process id on its node; 0 if it is not known."""
    subprocess: str = ""
    """What runs in a subprocess of the actor, task or rank that all else is about; empty for that one itself."""

    def __str__(self) -> str:
        of = f"process {self.subprocess} of " if self.subprocess else ""
        rank = RankName.parse(self.name)
        if rank is not None:
            return f"{of}rank {rank.rank} of group {rank.group}"
        what = self.kind if self.kind == self.label else f"{self.kind} {self.label}"
        return f"{of}{what} {self.name}" if self.name not in ("", self.label) else f"{of}{what}"


@dataclass(frozen=True)
class ProcessCall:
    """A call that has not returned."""

    caller: str
    """The id of the process that has called; empty if it is not known."""
    callee: str
    """The id of the process that runs the call, or will; empty if it is not known yet."""
    name: str
    """``Class.method``, or the function of a plain task."""
    state: str
    """``running``, ``waiting for arguments``, or ``queued``; with ``, its caller has ended``, nobody waits for it."""
    seconds: float
    """How long it has been in that state, by the nodes' clocks."""


def processes(tables: GcsTables, on_nodes: Mapping[str, Iterable[NodeProcess]]) -> list[Process]:
    """Return the processes of users' programs: drivers first, then by pod and process id.

    Args:
        tables: What the GCS knows.
        on_nodes: The worker processes of each pod, and after them their subprocesses.
    """
    jobs = _jobs(tables)
    jobs_of_tasks = {task.worker_id: task.job_id for task in tables.tasks}
    found = [_driver(driver, jobs[driver.job_id]) for driver in tables.drivers]
    for pod, workers in sorted(on_nodes.items()):
        by_pid: dict[int, Process] = {}
        for worker in workers:
            if (parent := by_pid.get(worker.parent)) is not None:
                found.append(_subprocess(worker, parent))
                continue
            actor = _actor_of(worker, tables.actors)
            job_id = actor.job_id if actor else jobs_of_tasks.get(worker.worker_id, "")
            by_pid[worker.pid] = _worker(worker, actor, jobs.get(job_id, job_id), pod)
            found.append(by_pid[worker.pid])
    # Pods that share the kernel's process ids see the processes of all.
    return list({process.id: process for process in found}.values())


def calls(tables: GcsTables, known: Sequence[Process]) -> list[ProcessCall]:
    """Return the calls between these processes, the longest first."""
    by_actor = {process.actor_id: process.id for process in known if process.actor_id}
    ids = {process.id for process in known}
    # A driver is the task without a name.
    of_task = {
        task.task_id: by_actor.get(task.actor_id, "") if task.actor_id else task.worker_id if task.name else task.job_id
        for task in tables.tasks
    }
    found = [
        ProcessCall(of_task.get(task.parent_id, ""), of_task[task.task_id], task.name, task.state, task.seconds)
        for task in tables.tasks
        if task.name and ids.intersection((of_task.get(task.parent_id), of_task[task.task_id]))
    ]
    return sorted(found, key=lambda call: -call.seconds)


def paused(tables: GcsTables) -> list[tuple[Process, PauseRow]]:
    """Return the processes that are paused for a debugger, by their starts; none that have ended meanwhile."""
    jobs = _jobs(tables)
    actors = {actor.actor_id: actor for actor in tables.actors}
    drivers = {driver.job_id: driver for driver in tables.drivers}
    tasks = {task.worker_id: task for task in tables.tasks if not task.actor_id}
    found = []
    for row in sorted(tables.pauses, key=lambda row: row.pause.since):
        if (actor := actors.get(row.process_id)) is not None:
            process = _worker(NodeProcess(0, row.process_id, ""), actor, jobs.get(actor.job_id, actor.job_id), row.pod)
        elif (driver := drivers.get(row.process_id)) is not None:
            process = _driver(driver, jobs[driver.job_id])
        elif (task := tasks.get(row.process_id)) is not None:
            worker = NodeProcess(0, row.process_id, task.name)
            process = _worker(worker, None, jobs.get(task.job_id, task.job_id), row.pod)
        else:
            continue
        found.append((process, row))
    return found


def dead(row: DeadActorRow) -> Process:
    """Return the process of an actor that is dead."""
    return _worker(NodeProcess(row.pid, row.actor.worker_id, ""), row.actor, row.job, row.pod)


def is_target(text: str) -> bool:
    """Return whether a text is meant to name processes, and not a pool or a group."""
    kind, slash, _ = text.partition("/")
    return text == ALL or (slash != "" and kind in KINDS)


def matches(target: str, process: Process) -> bool:
    """Return whether the target names this process."""
    kind, _, name = target.partition("/")
    return target == ALL or name in _names(kind, process)


def chosen(target: str, processes: Sequence[Process]) -> list[Process]:
    """Return the processes that the target names.

    Raises:
        ValueError: There is none, or the target is none; the message names those that there are.
    """
    kind, _, name = target.partition("/")
    if target != ALL and not (is_target(target) and name):
        raise ValueError(f"{target} names no processes: write job/ID, actor/NAME, actor/CLASS, node/POD or {ALL}")
    found = [process for process in processes if matches(target, process)]
    if not found and target != ALL:
        there = sorted({each for process in processes for each in _names(kind, process) if each})
        raise ValueError(f"there is no process of {target}; there are {', '.join(there) or 'none'}")
    return found


def _jobs(tables: GcsTables) -> dict[str, str]:
    """Return how people name each job: by the id of its submission, if it was submitted."""
    return {driver.job_id: driver.submission_id or driver.job_id for driver in tables.drivers}


def _actor_of(worker: NodeProcess, actors: Iterable[ActorRow]) -> ActorRow | None:
    """Return the actor that the process is; while its constructor runs, the only one of its class that has no process.

    Ray knows the process of an actor once the constructor has returned.
    """
    known = next((actor for actor in actors if actor.worker_id == worker.worker_id), None)
    class_name, _, method = worker.doing.rpartition(".")
    if known or method != _CONSTRUCTOR:
        return known
    starting = [actor for actor in actors if actor.class_name == class_name and not actor.worker_id]
    return starting[0] if len(starting) == 1 else None


def _driver(driver: DriverRow, job: str) -> Process:
    return Process(driver.job_id, DRIVER, DRIVER, "", "", "", job, driver.pod, driver.pid)


def _worker(worker: NodeProcess, actor: ActorRow | None, job: str, pod: str) -> Process:
    if actor is not None:
        naming = "actor", actor.class_name, actor.name, actor.namespace, actor.actor_id
    else:
        class_name, _, method = worker.doing.rpartition(".")
        is_starting = method == _CONSTRUCTOR
        naming = "actor" if is_starting else "task", class_name if is_starting else worker.doing, "", "", ""
    return Process(worker.worker_id, *naming, job, pod, worker.pid)


def _subprocess(child: NodeProcess, parent: Process) -> Process:
    return replace(parent, id=f"{child.worker_id}/{child.pid}", actor_id="", pid=child.pid, subprocess=child.doing)


def _names(kind: str, process: Process) -> tuple[str, ...]:
    if kind == JOB:
        return (process.job,)
    return (process.pod,) if kind == NODE else (process.name, process.label) if process.kind == ACTOR else ()
