"""Start the head's raylet before the dashboard has started, and the workers' raylets at the same time.

`ray start --head` starts the GCS and the dashboard, waits until the dashboard has written its address into the GCS, and
only then starts the raylet. The dashboard first imports its modules, for seconds, and nothing of a start waits for it.
`ray start` of a worker waits for the head's raylet, of which it needs two directories (see `ray_start`).
"""

import logging
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import ray

from workergroups_agent import head_directories

LOGGER = logging.getLogger(__name__)

POLL_SECONDS = 0.05
# `ray start` needs less than a second from the GCS to the dashboard; without us, it waits for a minute.
DEADLINE_SECONDS = 20.0
# Of Ray's processes on which no node, placement group or rank depends.
NICE = 10
_DASHBOARD = "/ray/dashboard/dashboard.py"
_SUPERVISOR = "workergroups_agent.executor"
_NEEDED = ("gcs_server", "raylet")
_LOCAL = ("127.0.0.1", "localhost")
# Where Ray keeps the address, in the GCS's key-value store.
_KEY = _NAMESPACE = b"dashboard"


class Dashboard(NamedTuple):
    """What Ray's dashboard was told when it was started."""

    address: str
    session_dir: str


class Process(NamedTuple):
    """A process in this pod's network: with `hostPID`, those of other pods are visible, too."""

    pid: int
    parent: int
    name: str
    arguments: tuple[str, ...]


def start_raylet_first(gcs_address: str) -> None:
    """Return once the raylet has been started, or after a while: a driver that connects to it waits anyway."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    announced = False
    while time.monotonic() < deadline:
        started = started_by_ray(list(visible_processes()))
        if any(each.name == "raylet" for each in started):
            _let_go_first(started)
            return
        dashboard = next((found for each in started if (found := dashboard_of(each.arguments))), None)
        if dashboard is not None and not announced:
            _announce(gcs_address, dashboard)
            announced = True
        time.sleep(POLL_SECONDS)


def started_by_ray(processes: list[Process]) -> list[Process]:
    """Return the children of `ray start`, the process that has started the GCS."""
    starters = {each.parent for each in processes if each.name == "gcs_server"}
    return [each for each in processes if each.parent in starters and _SUPERVISOR not in each.arguments]


def dashboard_of(arguments: tuple[str, ...]) -> Dashboard | None:
    """Return the dashboard with this command line, and the address that it is going to write; None for other processes."""
    if not any(each.endswith(_DASHBOARD) for each in arguments):
        return None
    options = dict(each[2:].split("=", 1) for each in arguments if each.startswith("--") and "=" in each)
    host, port, session_dir = (options.get(name) for name in ("host", "port", "session-dir"))
    ip = host if host in _LOCAL else options.get("node-ip-address")
    return Dashboard(f"{ip}:{port}", session_dir) if ip and port and session_dir else None


def _announce(gcs_address: str, dashboard: Dashboard) -> None:
    """Write the address as the dashboard does; the dashboard writes it again when it listens."""
    gcs = ray._raylet.GcsClient(address=gcs_address)
    head_directories.announce(gcs, dashboard.session_dir)
    gcs.internal_kv_put(_KEY, dashboard.address.encode(), False, _NAMESPACE)
    LOGGER.info("the raylet does not wait for the dashboard at %s", dashboard.address)


def _let_go_first(started: list[Process]) -> None:
    """Lower the priority of dashboard, client server and monitors, also of what they start later."""
    for each in started:
        if each.name not in _NEEDED:
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, each.pid, NICE)


def visible_processes() -> Iterator[Process]:
    """Yield the processes of this pod's network, whatever their names."""
    network = os.readlink("/proc/self/ns/net")
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.readlink(path / "ns/net") != network:
                continue
            # A program gives its processes any bytes for a name.
            stat, command_line = ((path / file).read_bytes().decode(errors="replace") for file in ("stat", "cmdline"))
            before, _, after = stat.rpartition(") ")
            arguments = command_line.split("\0")
            yield Process(int(path.name), int(after.split()[1]), before.partition(" (")[2], tuple(arguments))
