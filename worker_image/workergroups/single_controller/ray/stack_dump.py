"""The Python stacks of a rank whose main thread is busy, even in C code that holds the interpreter's lock.

A rank's process registers a signal on which Python's faulthandler writes the stacks of all threads. The faulthandler
runs inside the signal handler, so it needs neither a thread nor the lock, and user methods stay in the main thread. It
writes to a file in memory, which a reader on the same node finds by its name among the processes' open files.
"""

from __future__ import annotations

import faulthandler
import fcntl
import os
import re
import signal
import time
from collections.abc import Collection
from io import FileIO
from pathlib import Path

from workergroups.own_processes import open_files

_SIGNAL = signal.SIGUSR2
_FILE_NAME = "workergroups-stacks-"
_DUMP_TIMEOUT = 3.0
_SETTLED_AFTER = 0.05
_MOST_BYTES = 1024 * 1024

_file: int | None = None


def enable(actor_id: str) -> None:
    """Let other processes of this node ask for this actor's stacks. Does nothing on systems other than Linux."""
    global _file
    if _file is None and hasattr(os, "memfd_create"):
        _file = os.memfd_create(_FILE_NAME + actor_id)
        # Readers empty the file before each dump, so each write must go to the file's current end.
        fcntl.fcntl(_file, fcntl.F_SETFL, os.O_APPEND)
        faulthandler.register(_SIGNAL, file=_file, all_threads=True, chain=False)


def dump(actor_ids: Collection[str]) -> dict[str, str]:
    """Return the stacks of these actors that run on this node: all threads, the innermost call first.

    It takes no longer than the slowest process, and gives up on frozen ones after three seconds.
    """
    # Other processes must not get the signal, which would end them.
    asked = {actor_id: _ask(pid, path) for pid, path, actor_id in open_files(_FILE_NAME) if actor_id in actor_ids}
    deadline = time.monotonic() + _DUMP_TIMEOUT
    return {actor_id: _answer(file, deadline) for actor_id, file in asked.items()}


def _ask(pid: int, path: Path) -> FileIO | OSError:
    """Ask a process for its stacks; return the file to which it writes them, or why it cannot be asked."""
    try:
        file = FileIO(path, "r+")
        file.truncate(0)
        os.kill(pid, _SIGNAL)
    except OSError as error:
        return error
    return file


def _answer(file: FileIO | OSError, deadline: float) -> str:
    if isinstance(file, OSError):
        return f"no stacks: {file}"
    with file:
        text = _read_when_settled(file.fileno(), deadline)
    return _without_rays_threads(text) if text else f"no stacks within {_DUMP_TIMEOUT:g} s"


def _read_when_settled(descriptor: int, deadline: float) -> str:
    """Return the content of the file once it has stopped growing."""
    size = os.fstat(descriptor).st_size
    while time.monotonic() < deadline:
        time.sleep(_SETTLED_AFTER)
        now = os.fstat(descriptor).st_size
        if now and now == size:
            break
        size = now
    return os.pread(descriptor, min(size, _MOST_BYTES), 0).decode(errors="replace")


def _without_rays_threads(text: str) -> str:
    """Return the text without threads that run only Ray and the standard library."""
    threads = [_since_the_worker_began(thread) for thread in re.split(r"\n\n+", text.strip())]
    of_users = [thread for thread in threads if _has_user_frame(thread)]
    return "\n".join(of_users or threads[-1:])


def _since_the_worker_began(thread: str) -> str:
    """Return the stack without what called Ray's program: in a fork of a fork server, that is the server."""
    return re.sub(r"(?<=\n)(.*/default_worker\.py\", .*)\n[\s\S]*", r"\1", thread)


def _has_user_frame(thread: str) -> bool:
    files = re.findall(r'File "([^"]+)"', thread)
    return any("/ray/" not in file and not file.endswith("/threading.py") for file in files)
