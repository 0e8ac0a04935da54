"""The worker processes of this node and their subprocesses, as the kernel lists them: no process of Ray has to answer.

Nothing of Ray is imported here, which would take a second.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from workergroups.node import own_processes
from workergroups.node.own_processes import KernelProcess
from workergroups.processes.tables import NodeProcess
from workergroups_common.text import plain

_LOG = re.compile(r".*/worker-(?P<worker_id>[0-9a-f]{56})-[0-9a-f]{8}-\d+\.err")
_TITLE = re.compile(r"ray::(?P<doing>.*)", re.DOTALL)
_STANDARD_ERROR = 2
_OF_RAY = ("IDLE", "SPILL_", "RESTORE_")
_MODULE = re.compile(r"(-[^mc]\S* )*(-m ?(?P<module>[\w.]+)|-c ?(from (?P<of_code>[\w.]+) import)?|(?P<file>[^-]\S*))")
_TRACKER = "multiprocessing.resource_tracker"  # of Python's own, one for each process that uses multiprocessing
_MOST_GENERATIONS = 8
_MOST_SEARCHED = 1000
_MOST_TEXT = 100


def node_processes() -> list[NodeProcess]:
    """Return the worker processes of this node that users' programs have, by process id, then their subprocesses.

    Ray does not know subprocesses, such as those of an inference engine.
    """
    table = own_processes.table()
    found = map(_worker, table)
    workers = {each.pid: each for each in found if each is not None and not each.doing.startswith(_OF_RAY)}
    return [*workers.values(), *(child for pid in table if (child := _subprocess(pid, table, workers)) is not None)]


def _worker(pid: int) -> NodeProcess | None:
    try:
        log = _LOG.fullmatch(os.readlink(f"/proc/{pid}/fd/{_STANDARD_ERROR}"))
        title = _TITLE.match(Path(f"/proc/{pid}/cmdline").read_text(errors="replace").rstrip("\0"))
    except OSError:  # it ended
        return None
    return NodeProcess(pid, log["worker_id"], title["doing"].removesuffix("()")) if log and title else None


def _subprocess(pid: int, table: Mapping[int, KernelProcess], workers: Mapping[int, NodeProcess]) -> NodeProcess | None:
    if pid in workers or (worker := _ancestor(pid, table, workers)) is None:
        return None
    try:
        command = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").rstrip("\0").split("\0")
    except OSError:
        return None
    program = _program(command)
    return None if program == _TRACKER else NodeProcess(pid, worker.worker_id, program, worker.pid)


def _ancestor(pid: int, table: Mapping[int, KernelProcess], workers: Mapping[int, NodeProcess]) -> NodeProcess | None:
    for _ in range(_MOST_GENERATIONS):
        if pid not in table:
            return None
        pid = table[pid].parent
        if pid in workers:
            return workers[pid]
    return None


def _program(command: Sequence[str]) -> str:
    """Return what runs in a process, in a word: of Python, a module or a file."""
    name, *words = command
    program = Path(name).name if words else name  # without words, it is a title
    if words and program.startswith("python") and (found := _MODULE.match(" ".join(words)[:_MOST_SEARCHED])):
        program = found["module"] or found["of_code"] or Path(found["file"] or program).name
    return plain(program, _MOST_TEXT)
