"""The Python stacks of processes of this node, even of those that hang in C code that holds the interpreter's lock.

A process registers a signal on which Python's faulthandler writes the stacks of all threads. The faulthandler runs
inside the signal handler, so it needs neither a thread nor the lock, and user methods stay in the main thread. It
writes to a file in memory, which a reader on the same node finds by its name among the process's open files. Ranks have
that file from the beginning, other processes since they were first asked: see `worker_process.default_worker`. A driver
can be asked once it has attached to a group or a pool, or imported verl. Of other processes, such as subprocesses,
`py_spy` reads the stacks, where the kernel lets it.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import threading
import time
from collections.abc import Collection, Iterable
from io import FileIO
from pathlib import Path

from workergroups.node.own_processes import about, open_file, open_files
from workergroups.processes import py_spy
from workergroups.worker_process.default_worker import FILE_NAME, answer, signals, write_to_memory

_NO_ANSWER = "no stacks: it cannot be asked, and there is no py-spy to read them (pip install py-spy)"
_DUMP_TIMEOUT = 3.0
_OPEN_TIMEOUT = 1.5
"""A process that waits for a result of Ray runs signal handlers once a second."""
_SETTLED_AFTER = 0.05
_MOST_BYTES = 1024 * 1024
_STANDARD_ERROR = 2
_OF_FAULTHANDLER = re.compile(r"(Current thread|Thread) 0x|  File \"|  \.\.\.|  <|$")

# Ray where it is installed (users' code may well be in /home/ray), threads, and the thread that waits for questions.
_NOT_OF_USERS = re.compile(
    r"/(site-packages|dist-packages|python)/ray/|/threading\.py$|/workergroups/stacks/flight_recorder\.py$"
)

_actor_id: str | None = None


def enable(actor_id: str) -> None:
    """Let other processes of this node ask for this actor's stacks. Does nothing on systems other than Linux."""
    global _actor_id
    if _actor_id is None and hasattr(os, "memfd_create"):
        if (earlier := open_file(os.getpid(), FILE_NAME)) is not None:
            os.close(int(earlier[0].name))  # the process was asked before it was a rank
        write_to_memory(actor_id)
        _actor_id = actor_id


def enable_driver() -> None:
    """Let other processes of this node ask this one for its stacks, which no raylet has started: see `default_worker`.

    It does nothing in a process that can be asked already, nor outside of the main thread.
    """
    is_possible = hasattr(os, "memfd_create") and threading.current_thread() is threading.main_thread()
    if is_possible and open_file(os.getpid(), FILE_NAME) is None and not _catches(os.getpid(), signals()[0]):
        answer()


def actor_of(pid: int) -> str | None:
    """Return the actor of a process that can be asked as a rank; ``None`` of all others."""
    found = open_file(pid, FILE_NAME)
    return found[1] or None if found is not None else None


def dump(actor_ids: Collection[str]) -> dict[str, str]:
    """Return the stacks of these actors that run on this node: all threads, the innermost call first.

    It takes no longer than the slowest process, and gives up on frozen ones after three seconds.
    """
    pids = {actor_id: pid for pid, _, actor_id in open_files(FILE_NAME) if actor_id in actor_ids}
    found = dump_processes(pids.values())
    return {actor_id: found[pid] for actor_id, pid in pids.items()}


def dump_processes(pids: Iterable[int]) -> dict[int, str]:
    """Return the stacks of these processes of this node, or why there are none, by process id; see `dump`."""
    # The signal would end a process that does not catch it.
    catches = {pid: _catches(pid, signals()[0]) for pid in pids}
    willing = [pid for pid, is_willing in catches.items() if is_willing]
    _open_files_of(willing)
    asked = {pid: _ask(pid) for pid in willing}
    deadline = time.monotonic() + _DUMP_TIMEOUT
    answers = {pid: _answer(pid, file, deadline) for pid, file in asked.items()}
    from_outside = {
        pid: _without_rays_threads(text) for pid, text in py_spy.dump(catches.keys() - answers.keys()).items()
    }
    return dict.fromkeys(catches, _NO_ANSWER) | from_outside | answers


def _catches(pid: int, signal: int) -> bool:
    return _is_in(pid, "SigCgt", signal)


def is_writing(pid: int) -> bool:
    """Return whether the main thread is in the signal handler, which blocks its own signal until it returns."""
    return _is_in(pid, "SigBlk", signals()[0])


def _is_stopped(pid: int) -> bool:
    """Return whether a signal has stopped the process, or a debugger of the kernel's."""
    try:
        state = re.search(r"^State:\s*(\S)", about(pid, "status"), re.MULTILINE)
    except OSError:
        return False
    return state is not None and state[1] in "Tt"


def _is_in(pid: int, signal_set: str, signal: int) -> bool:
    try:
        status = about(pid, "status")
    except OSError:
        return False
    found = re.search(rf"^{signal_set}:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return found is not None and bool(int(found[1], 16) >> (signal - 1) & 1)


def _open_files_of(pids: Collection[int]) -> None:
    """Let processes open their files in memory; return when all have, or when some hang in C code."""
    without = [pid for pid in pids if _memory_of(pid) is None]
    for pid in without:
        if _catches(pid, signals()[1]):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signals()[1])
    deadline = time.monotonic() + _OPEN_TIMEOUT
    while time.monotonic() < deadline and any(_memory_of(pid) is None for pid in without):
        time.sleep(_SETTLED_AFTER)


def _memory_of(pid: int) -> Path | None:
    """Return the file in memory to which a process writes its stacks; ``None`` if it does not write there yet."""
    found = open_file(pid, FILE_NAME)
    if found is None:
        return None
    try:
        opened = about(pid, f"fdinfo/{found[0].name}")
    except OSError:  # it ended
        return None
    flags = re.search(r"^flags:\s*([0-7]+)$", opened, re.MULTILINE)
    return found[0] if flags is not None and int(flags[1], 8) & os.O_APPEND else None


def _ask(pid: int) -> tuple[FileIO, int] | OSError:
    """Ask a process for its stacks; return the file to which it writes them and where, or why it cannot be asked."""
    try:
        found = _memory_of(pid)
        file = FileIO(found, "r+") if found else FileIO(f"/proc/{pid}/fd/{_STANDARD_ERROR}", "r")
        if found:
            file.truncate(0)
        elif not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("it runs C code, and its standard error is no file")
        begin = os.fstat(file.fileno()).st_size
        os.kill(pid, signals()[0])
    except OSError as error:
        return error
    return file, begin


def _answer(pid: int, asked: tuple[FileIO, int] | OSError, deadline: float) -> str:
    if isinstance(asked, OSError):
        return f"no stacks: {asked}"
    file, begin = asked
    with file:
        text = _read_when_settled(pid, file.fileno(), begin, deadline)
    stopped = ": its process is stopped" if _is_stopped(pid) else ""
    return _without_rays_threads(text) if text else f"no stacks within {_DUMP_TIMEOUT:g} s{stopped}"


def _read_when_settled(pid: int, descriptor: int, begin: int, deadline: float) -> str:
    """Return what was written from that place on once the file has stopped growing, and not because of a busy node."""
    size = os.fstat(descriptor).st_size
    while time.monotonic() < deadline:
        time.sleep(_SETTLED_AFTER)
        writing = is_writing(pid)
        now = os.fstat(descriptor).st_size
        if now > begin and now == size and not writing:
            break
        size = now
    text = os.pread(descriptor, min(size - begin, _MOST_BYTES), begin).decode(errors="replace")
    return "\n".join(line for line in text.splitlines() if _OF_FAULTHANDLER.match(line))


def _without_rays_threads(text: str) -> str:
    """Return the text without threads that run only Ray, the standard library, and what waits for questions."""
    threads = [_since_the_worker_began(thread) for thread in re.split(r"\n\n+", text.strip())]
    of_users = [thread for thread in threads if _has_user_frame(thread)]
    return "\n".join(of_users or threads[-1:])


def _since_the_worker_began(thread: str) -> str:
    """Return the stack without what called Ray's program: ours, and in a fork of a fork server that server."""
    return re.sub(r"(?<=\n)(.*/default_worker\.py\", .*)\n[\s\S]*", r"\1", thread)


def _has_user_frame(thread: str) -> bool:
    files = re.findall(r'File "([^"]+)"', thread)
    return not all(map(_NOT_OF_USERS.search, files))
