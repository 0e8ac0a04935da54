"""Which fork server may serve which process, and where it listens: `setup_worker` imports this before each rank.

The executor writes the group's UID into a variable of each of its processes. `setup_worker` replaces it by the
directory of the fork server. So a rank that Ray's own `setup_worker` has started knows none.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from workergroups_api.vocabulary import Variable

DIRECTORY = "/tmp/workergroups/warm"
_LIBRARY = str(Path(__file__).parents[2])
_GROUP = re.compile(r"[A-Za-z0-9-]{1,40}")
# Ray puts such a worker into its own control group; the server's forks would stay in the server's.
_OWN_CONTROL_GROUP = "--enable-resource-isolation"


def directory_of(environment: Mapping[str, str], command: Sequence[str]) -> Path | None:
    """Return the directory of the fork server that may serve a process, whether there is one or not.

    Args:
        environment: The variables with which the process starts.
        command: Its command line: the interpreter, the program, its arguments.

    Returns:
        ``None`` if no server may serve the process: it belongs to no group, or Ray wants more of it than a fork does.
    """
    group, raylet = environment.get(Variable.WARM.value, ""), environment.get("RAY_RAYLET_PID", "")
    if not _GROUP.fullmatch(group) or not raylet.isdecimal():
        return None
    if any(each.startswith(_OWN_CONTROL_GROUP) for each in command):
        return None
    same = sorted((name, value) for name, value in environment.items() if name != "PYTHONPATH")
    code, others = python_path(environment)
    container = os.readlink("/proc/self/ns/mnt")  # pods can share /tmp
    identity = json.dumps([command[:2], same, bool(code), others, container])
    key = hashlib.sha256(identity.encode()).hexdigest()[:16]
    return Path(DIRECTORY, raylet, group, key)


def python_path(environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the first directory of PYTHONPATH, where the executor puts the group's code, and the others.

    If the library comes first, the group has no code.
    """
    paths = environment.get("PYTHONPATH", "")
    first, _, others = paths.partition(os.pathsep)
    return ("", paths) if first in ("", _LIBRARY) else (os.path.abspath(first), others)


def own_directory(environment: Mapping[str, str]) -> Path | None:
    """Return what `setup_worker` has written into the variables of this process, if it has."""
    value = environment.get(Variable.WARM.value, "")
    return Path(value) if value.startswith(DIRECTORY + os.sep) else None


SOCKET = "socket"
"""Where the server listens, in its directory."""
LOCK = "lock"
"""The file that the server keeps locked while it lives, and that has its process id."""
UNFIT = "unfit"
"""The file that exists if there can be no server, since a fork would not be as good as a new process."""
RANKS = "ranks"
"""The directory with a file for each rank for which the server stays, named after its process id."""
AT_START = ("sitecustomize", "usercustomize")
"""Modules that an interpreter imports when it starts, if they exist; a fork cannot."""
_started_with: dict[str, str] | None = None


def started_with(environment: Mapping[str, str]) -> None:
    """Note with which variables this process, a fork, takes the place of another."""
    global _started_with
    _started_with = dict(environment)


def environment_at_start() -> dict[str, str]:
    """Return the variables with which this process started."""
    if _started_with is not None:
        return dict(_started_with)
    entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    pairs = (os.fsdecode(entry).partition("=") for entry in entries if b"=" in entry)
    return {name: value for name, _, value in pairs}
