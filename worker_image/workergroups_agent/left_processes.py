"""End what ranks leave behind: processes that a rank has started, and that go on when it has ended.

Ray ends those of the rank's process group. One with a session of its own, as engines for inference and launchers have,
goes on and keeps its memory of a device, so that the next rank may find none. The kernel gives an orphan another parent
and forgets whose it was. So the descendants of ranks are noted each second, and the last note counts. A daemon, whose
parent ends at once, is nobody's descendant and may stay.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from workergroups.node import own_processes
from workergroups.node.own_processes import KernelProcess
from workergroups.processes import stack_dump

LOOK_SECONDS = 1.0
# What Ray calls the process of an actor. Only of these, the open files are read.
_OF_RAY = b"ray::"
# A fork server leaves its rank within milliseconds. If it is noted then, it stays all the same.
_FORK_SERVER = b"workergroups-fork-server"


class KnownProcess(NamedTuple):
    """A process. Another one that gets its id has started at another time."""

    pid: int
    start: int


def watch() -> None:
    """End what ranks leave behind, for ever."""
    descendants: dict[KnownProcess, frozenset[KnownProcess]] = {}
    while True:
        table = own_processes.table()
        for left in left_by_ranks(descendants, table):
            end(left)
        descendants = descendants_of(ranks(table, descendants), table)
        time.sleep(LOOK_SECONDS)


def ranks(table: Mapping[int, KernelProcess], known: Iterable[KnownProcess]) -> list[KnownProcess]:
    """Return the processes of ranks, those of them that are known included."""
    earlier = set(known)
    found = (KnownProcess(pid, process.start) for pid, process in table.items())
    return [each for each in found if each in earlier or _is_rank(each.pid)]


def descendants_of(
    roots: Iterable[KnownProcess], table: Mapping[int, KernelProcess]
) -> dict[KnownProcess, frozenset[KnownProcess]]:
    """Return the descendants of each of these processes."""
    children: dict[int, list[KnownProcess]] = {}
    for pid, process in table.items():
        children.setdefault(process.parent, []).append(KnownProcess(pid, process.start))
    return {root: frozenset(_below(root, children)) for root in roots}


def left_by_ranks(
    descendants: Mapping[KnownProcess, frozenset[KnownProcess]],
    table: Mapping[int, KernelProcess],
    is_ours: Callable[[int], bool] = lambda pid: _FORK_SERVER in _command_line(pid),
) -> frozenset[KnownProcess]:
    """Return what goes on of the descendants of ranks that have ended, and what these have started meanwhile."""
    running = {KnownProcess(pid, process.start) for pid, process in table.items()}
    left = {each for rank, below in descendants.items() if rank not in running for each in below & running}
    left = {each for each in left if not is_ours(each.pid)}
    return frozenset(left.union(*descendants_of(left, table).values()))


def end(left: KnownProcess) -> None:
    """Kill a process, and print which one."""
    what = _command_line(left.pid).replace(b"\0", b" ").decode(errors="replace")[:200]
    with suppress(OSError):  # it ended by itself
        os.kill(left.pid, signal.SIGKILL)
        print(f"a rank has ended, and process {left.pid}, which it had started, has not: killed: {what}", flush=True)


def _below(root: KnownProcess, children: Mapping[int, list[KnownProcess]]) -> list[KnownProcess]:
    found = list(children.get(root.pid, ()))
    for each in found:  # it grows meanwhile
        found += children.get(each.pid, ())
    return found


def _is_rank(pid: int) -> bool:
    return _command_line(pid).startswith(_OF_RAY) and stack_dump.actor_of(pid) is not None


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it ended
        return b""
