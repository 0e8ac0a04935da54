"""The Python stacks of a rank whose main thread is busy, even in C code that holds the interpreter's lock.

A rank's process registers a signal on which Python's faulthandler writes the stacks of all threads. It runs inside the
signal handler, so it needs neither a thread nor the lock, and user methods stay in the main thread. It writes to
a file in memory, which a reader on the same node finds among the process's open files.
"""

from __future__ import annotations

import contextlib
import faulthandler
import fcntl
import os
import re
import signal
import time
from pathlib import Path

_SIGNAL = signal.SIGUSR2
_FILE_NAME = "workergroups-stacks"
_DUMP_TIMEOUT = 3.0
_SETTLED_AFTER = 0.05

_file: int | None = None


def enable() -> None:
    """Let other processes of this node ask this one for its stacks. Does nothing on systems other than Linux."""
    global _file
    if _file is None and hasattr(os, "memfd_create"):
        _file = os.memfd_create(_FILE_NAME)
        # Readers empty the file before each dump, so each write must go to its end, wherever that is.
        fcntl.fcntl(_file, fcntl.F_SETFL, os.O_APPEND)
        faulthandler.register(_SIGNAL, file=_file, all_threads=True, chain=False)


def dump(pid: int) -> str:
    """The stacks of the threads of a process of this node that called ``enable``, the innermost call first.

    Raises:
        LookupError: There is no such process, or it did not call ``enable``, or it did not answer.
    """
    path = _stack_file(pid)
    with open(path, "r+b", buffering=0) as file:
        file.truncate(0)
        os.kill(pid, _SIGNAL)
        text = _read_when_settled(file.fileno())
    if not text:
        raise LookupError(f"process {pid} did not write its stacks within {_DUMP_TIMEOUT:g} s")
    return _without_rays_threads(text)


def _stack_file(pid: int) -> Path:
    # Only a process that called `enable` has this file, so no other is ever sent the signal, which would end it.
    with contextlib.suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if _FILE_NAME in os.readlink(descriptor):
                    return descriptor
    raise LookupError(f"process {pid} is gone, or does not offer its stacks")


def _read_when_settled(descriptor: int) -> str:
    """What is in the file once it has not grown for a moment."""
    deadline = time.monotonic() + _DUMP_TIMEOUT
    size = 0
    while time.monotonic() < deadline:
        time.sleep(_SETTLED_AFTER)
        now = os.fstat(descriptor).st_size
        if now and now == size:
            break
        size = now
    return os.pread(descriptor, size, 0).decode(errors="replace")


def _without_rays_threads(text: str) -> str:
    """Leave out threads that only Ray and the standard library run."""
    threads = re.split(r"\n\n+", text.strip())
    of_users = [thread for thread in threads if _has_user_frame(thread)]
    return "\n".join(of_users or threads[-1:])


def _has_user_frame(thread: str) -> bool:
    files = re.findall(r'File "([^"]+)"', thread)
    return any("/ray/" not in file and not file.endswith("/threading.py") for file in files)
