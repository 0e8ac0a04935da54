"""The Python stacks of processes that do not expect to be asked, read from outside by py-spy, which comes with Ray.

The kernel must allow this container's processes to read each other's memory: most nodes do, unless
``kernel.yama.ptrace_scope`` is 1 or more.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

_AT_ONCE = 4
_MOST = 64
"""Of more processes, as with torch's compiler, the first."""
_TIMEOUT = 5.0


def dump(pids: Iterable[int]) -> dict[int, str]:
    """Return the stacks of these processes as Python's faulthandler writes them, or why there are none."""
    if (program := _program()) is None:
        return {}
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        wanted = list(pids)
        found = dict(zip(wanted, threads.map(lambda pid: _dump(program, pid), wanted[:_MOST]), strict=False))
    return dict.fromkeys(wanted, f"no stacks: those of the first {_MOST} such processes of the pod are read") | found


def _program() -> str | None:
    beside_python = Path(sys.executable).with_name("py-spy")
    return str(beside_python) if beside_python.exists() else shutil.which("py-spy")


def _dump(program: str, pid: int) -> str:
    try:
        command = [program, "dump", "--json", "--pid", str(pid)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"no stacks: py-spy failed: {error}"
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0]
        return f"no stacks: py-spy cannot read them: {reason.removeprefix('Error: ')}"
    return "\n\n".join(map(_thread, json.loads(done.stdout)))


def _thread(thread: Mapping[str, Any]) -> str:
    frames = (f'  File "{each["filename"]}", line {each["line"]} in {each["name"]}' for each in thread["frames"])
    return "\n".join((f"Thread 0x{thread['thread_id']:016x} (most recent call first):", *frames))
