"""Find processes of this node: all, those that run, and those with a file in memory whose name says whose they are."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

PROCESSES = Path("/proc")
_ENDED = "ZX"  # dead; in the first case, its exit code has not been read yet


class KernelProcess(NamedTuple):
    """What the kernel says about a process."""

    ended: bool
    parent: int
    start: int
    """When it has started, in ticks of the kernel's clock."""


def open_files(prefix: str) -> list[tuple[int, Path, str]]:
    """Return (process, path of the file, rest of its name) for each process that has a file with this prefix open."""
    found = ((pid, open_file(pid, prefix)) for pid in all_pids())
    return [(pid, *file) for pid, file in found if file is not None]


def all_pids(processes: Path = PROCESSES) -> list[int]:
    """Return the ids of all processes of this node, in ascending order."""
    return sorted(int(process.name) for process in processes.iterdir() if process.name.isdigit())


def about(pid: int | str, file: str, processes: Path = PROCESSES) -> str:
    """Return what a file of the kernel's says about a process, whose name in it may be cut within a character.

    Raises:
        OSError: There is no such process.
    """
    return (processes / str(pid) / file).read_text(errors="replace")


def read(pid: int | str, processes: Path = PROCESSES) -> KernelProcess:
    """Return what the kernel says about a process.

    Raises:
        OSError: There is no such process.
    """
    fields = about(pid, "stat", processes).rpartition(")")[2].split()
    return KernelProcess(fields[0] in _ENDED, int(fields[1]), int(fields[19]))


def table() -> dict[int, KernelProcess]:
    """Return all processes of this node that have not ended, by their ids, in ascending order."""
    found = {}
    for pid in all_pids():
        with suppress(OSError):
            found[pid] = read(pid)
    return {pid: process for pid, process in found.items() if not process.ended}


def container(pid: int | str, processes: Path = PROCESSES) -> str:
    """Return what all processes of a container have in common, whatever else its pod lets it see: the control group.

    Raises:
        OSError: There is no such process.
    """
    return about(pid, "cgroup", processes)


def of_this_container(pids: Iterable[int]) -> list[int]:
    """Return those of the processes that are in this one's container."""
    own, found = container("self"), []
    for pid in pids:
        with suppress(OSError):  # it has ended
            found += [pid] if container(pid) == own else []
    return found


def runs(pid: int | str) -> bool:
    """Return whether there is such a process, and it has not ended."""
    try:
        return not read(pid).ended
    except OSError:
        return False


def open_file(pid: int, prefix: str) -> tuple[Path, str] | None:
    """Return (path of the file, rest of its name) of a process; ``None`` if it has no such file open."""
    try:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            _, name, rest = os.readlink(descriptor).partition(prefix)
            if name:
                return descriptor, rest.removesuffix(" (deleted)")
    except OSError:  # it ended, or is another user's
        return None
    return None
