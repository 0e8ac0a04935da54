"""In the first rank of a group on a node: find out what its class needs, and start a fork server that imports it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import workergroups
import workergroups_common
from workergroups.ray_private.process import logs_directory
from workergroups_api import vocabulary

from . import forked, places
from .preload import changed, site_directories

# Without the working directory, which is first in the search path.
_BECOME_SERVER = "import sys; sys.path[:] = filter(None, sys.path); from workergroups.warm.server import main; main()"

PATIENCE_SECONDS = 60.0
"""How long the imports of a server wait for an idle CPU at most."""


def keep_warm(local_rank: int) -> None:
    """Keep a fork server for the next ranks of this group on this node, if it can have one.

    Call this when the rank's class is loaded, before its constructor. The server waits until a CPU is idle.
    """
    started = places.environment_at_start()
    directory = places.own_directory(started)
    code, _ = places.python_path(started)
    if local_rank != 0 or directory is None or forked.has_at_start(code):
        return
    with contextlib.suppress(Exception):  # without a server, the next rank starts as this one did
        lock = _lock(directory)
        if lock is not None:
            _order_server(lock, directory, code, started)


def _lock(directory: Path) -> int | None:
    """Count this rank among those for which a server stays; return a descriptor of its lock if there is no server."""
    ranks = directory / places.RANKS
    ranks.mkdir(mode=0o700, parents=True, exist_ok=True)
    (ranks / str(os.getpid())).touch()
    lock = os.open(directory / places.LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    (directory / places.SOCKET).unlink(missing_ok=True)  # of a server that was killed
    if (directory / places.UNFIT).exists():
        os.close(lock)
        return None
    return lock


def _order_server(lock: int, directory: Path, code: str, started: Mapping[str, str]) -> None:
    order = {
        "directory": str(directory),
        "lock": lock,
        "raylet": int(started["RAY_RAYLET_PID"]),
        "program": sys.argv[0],
        "code": code,
        "patience": PATIENCE_SECONDS,
        "modules": installed_modules(),
        "variables": changed(started, os.environ),
    }
    log = f"{logs_directory()}/workergroups-warm-{os.getpid()}.log"
    threading.Thread(target=_start, args=(order, started, log), daemon=True).start()


def installed_modules() -> list[str]:
    """Return the modules that this process has imported from its installation, in the order of their imports.

    They are the same in the next process, unlike those of the user's code. The library is one of them.
    """
    ours = (str(Path(str(module.__file__)).parent) for module in (workergroups, workergroups_common, vocabulary))
    homes = tuple(f"{home}{os.sep}" for home in (*site_directories(), *ours))
    return [name for name, module in list(sys.modules.items()) if _origin(name, module).startswith(homes)]


def _origin(name: str, module: object) -> str:
    """Return the file of a module that can be imported by that name again; empty if it is none."""
    spec = vars(module).get("__spec__") if isinstance(module, ModuleType) else None
    return str(getattr(spec, "origin", "")) if getattr(spec, "name", None) == name else ""


def _start(order: Mapping[str, Any], environment: Mapping[str, str], log: str) -> None:
    """Start the server, whose first process ends at once, so that the rank has no child."""
    command = [sys.executable, "-c", _BECOME_SERVER, "workergroups-fork-server"]
    with open(log, "ab", buffering=0) as output:
        started = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=environment,
            pass_fds=[order["lock"]],
            start_new_session=True,
        )
    os.close(order["lock"])
    started.communicate(json.dumps(order).encode())
