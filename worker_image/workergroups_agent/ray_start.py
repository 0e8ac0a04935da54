"""`ray start`, with less to wait for: `python3 -m workergroups_agent.ray_start start ...`, on the head and on workers.

What Ray does in sequence, and need not:

- On the head it starts the dashboard, waits until that has written its address into the GCS, and only then starts the
  raylet. The dashboard first imports its modules, for seconds. Here its address is written as soon as it is started.
- Since Ray 2.60 a worker asks the GCS, every two seconds, for the head's node, and takes two directories from it. The head
  announces them before its raylet has joined, so that both raylets start at the same time.
- A worker imports Ray while the head's GCS starts.
- A worker process with environment variables of its own imports Ray twice; `setup_worker` ends that.

Ray has no options for this, so this file replaces two functions within `ray._private`. A Ray without them starts as ever.
"""

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import ray._private.node
import ray._private.services
from ray.scripts.scripts import main

from workergroups_agent import head_directories
from workergroups_agent.listening import wait_for_gcs

# Of Ray's processes on which no node, placement group or rank depends.
NICE = 10
_MAY_WAIT = {"dashboard", "log_monitor", "monitor", "ray_client_server"}
# A worker starts when the head's container does. After this time Ray tries to connect, and reports what is wrong.
GCS_SECONDS = 60.0
# After them, a worker asks for the head's node in Ray's own way, which reports what is wrong.
SECONDS = 20.0
POLL_SECONDS = 0.1
_SETUP_WORKER = "setup_worker.py"
_LOCAL = ("127.0.0.1", "localhost")
# Where Ray keeps the dashboard's address, in the GCS's key-value store.
_KEY = _NAMESPACE = b"dashboard"


class Dashboard(NamedTuple):
    """What a dashboard is told when it is started."""

    gcs_address: str
    session_dir: str
    address: str
    """The one that it is going to write."""


def dashboard_of(command: Sequence[str]) -> Dashboard | None:
    """Return what a dashboard's command line says; None if that is too little, as from another version of Ray."""
    options = dict(each[2:].split("=", 1) for each in command if each.startswith("--") and "=" in each)
    host, port, gcs, session = (options.get(name) for name in ("host", "port", "gcs-address", "session-dir"))
    ip = host if host in _LOCAL else options.get("node-ip-address")
    return Dashboard(gcs, session, f"{ip}:{port}") if ip and port and gcs and session else None


def announce(dashboard: Dashboard) -> None:
    """Write the address as the dashboard does, which writes it again when it listens; and where the session is."""
    gcs = ray._raylet.GcsClient(address=dashboard.gcs_address)
    head_directories.announce(gcs, dashboard.session_dir)
    gcs.internal_kv_put(_KEY, dashboard.address.encode(), False, _NAMESPACE)


def starting(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Ray's start of a process, of which some go first, with our `setup_worker` in a raylet's command line."""
    their_file = str(Path(ray._private.services.__file__).parent / "workers" / _SETUP_WORKER)
    our_file = str(Path(__file__).parent / _SETUP_WORKER)

    def start(command: list[str], process_type: str, *positional: Any, **named: Any) -> Any:
        if process_type == "raylet":
            command = [each.replace(their_file, our_file) for each in command]
        started = theirs(command, process_type, *positional, **named)
        if process_type in _MAY_WAIT:
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, started.process.pid, NICE)
        if process_type == "dashboard" and (dashboard := dashboard_of(command)) is not None:
            announce(dashboard)
        return started

    return start


def asking(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """A worker's question for the head's node: what was announced or, if it is there, the node itself."""

    def ask(gcs: Any, *, timeout_per_retry: float | None = None, **choice: Any) -> Any:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            if (directories := head_directories.announced(gcs)) is not None:
                return [directories]
            if nodes := gcs.get_all_node_info(timeout=timeout_per_retry, **choice):
                return nodes.values()
            time.sleep(POLL_SECONDS)
        return theirs(gcs, timeout_per_retry=timeout_per_retry, **choice)

    return ask


def replace() -> None:
    """Put ours in the place of Ray's."""
    for module, name, ours in (
        (ray._private.services, "start_ray_process", starting),
        (ray._private.node, "get_all_node_info_until_retrieved", asking),
    ):
        if (theirs := getattr(module, name, None)) is not None:
            setattr(module, name, ours(theirs))


def gcs_of(arguments: Sequence[str]) -> str | None:
    """Return the address that a worker is to join; the head has none."""
    return next((each.partition("=")[2] for each in arguments if each.startswith("--address=")), None)


if __name__ == "__main__":
    replace()
    if (gcs := gcs_of(sys.argv)) is not None:
        wait_for_gcs(gcs, GCS_SECONDS)
        print(f"the GCS listens at {gcs}", flush=True)
    main()
