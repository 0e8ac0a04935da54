"""Which processes a person means: ``job/ID``, ``actor/NAME``, ``node/POD`` or ``all``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workergroups.naming import RankName

ALL = "all"
JOB, ACTOR, NODE = KINDS = ("job", "actor", "node")
DRIVER = "driver"


@dataclass(frozen=True)
class Process:
    """A process of a Ray program."""

    id: str
    """Ray's id of the worker process; of a driver, Ray's id of its job."""
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

    def __str__(self) -> str:
        rank = RankName.parse(self.name)
        if rank is not None:
            return f"rank {rank.rank} of group {rank.group}"
        what = self.kind if self.kind == self.label else f"{self.kind} {self.label}"
        return f"{what} {self.name}" if self.name else what


def is_target(text: str) -> bool:
    """Return whether a text is meant to name processes, and not a pool or a group."""
    return text == ALL or text.partition("/")[0] in KINDS


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


def _names(kind: str, process: Process) -> tuple[str, ...]:
    if kind == JOB:
        return (process.job,)
    return (process.pod,) if kind == NODE else (process.name, process.label) if process.kind == ACTOR else ()
