"""What a node knows of a process that died there: its last lines, and whether the kernel killed for memory."""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path

from workergroups.node.memory_kills import kills
from workergroups.ray_private.process import logs_directory

_LINES = 20
_FATAL = re.compile(r"^(Fatal Python error|terminate called)", re.MULTILINE)


def crash_report(pid: int) -> str:
    """Return the end of a dead Ray worker's standard error, and the kernel's kills for memory; empty if there are none.

    Run it on the node where the process was.
    """
    return "\n".join(filter(None, [_kills_for_memory(), _end_of_stderr(logs_directory(), pid)]))


def _end_of_stderr(logs: str, pid: int) -> str:
    paths = glob.glob(f"{glob.escape(logs)}/worker-*-{pid}.err")
    if not paths:
        return ""
    text = Path(max(paths, key=os.path.getmtime)).read_text(errors="replace")
    fatal = _FATAL.search(text)
    # Python and C++ first print what is wrong, and then long stacks.
    lines = [line for line in text[fatal.start() if fatal else 0 :].splitlines() if line and not line.startswith(":")]
    chosen = lines[:_LINES] if fatal else lines[-_LINES:]
    return "\n".join(["last lines of its standard error:", *chosen]) if chosen else ""


def _kills_for_memory() -> str:
    """Return how often the kernel has killed a process of this container for lack of memory."""
    number = kills()
    return f"the kernel has killed {number} processes of its container for memory (oom_kill)" if number else ""
