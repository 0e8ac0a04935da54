"""Control groups: each node's root for its pods, and a record of all processes of the cluster.

Everything that this tool starts is in one group, and so is everything that those processes start. A pidfile can be
lost and a child can be forgotten, but no process leaves its group on its own. So `down` finds the
containers and shims of a cluster whose tool was killed.
"""

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from tools.console import ToolError, wait_until
from tools.local_cluster.layout import NODES

_NAME = "workergroups"
_SYSTEM = "system"
_NODES = tuple(node.name for node in NODES)


def create(name: str = _NAME, containers: Sequence[str] = _NODES) -> None:
    """Create the group of the cluster's processes, and those for containers, of each node's kubelet."""
    for mount in _mounts():
        for path in (name, f"{name}/{_SYSTEM}", *(f"{name}/{group}" for group in containers)):
            _create(mount / path)
        _weigh(mount / name, len(containers) * (os.cpu_count() or 1))


def kubelet_root(node_name: str) -> str:
    """Return the group for the kubelet's `cgroupRoot`."""
    return f"/{_NAME}/{node_name}"


def adopt(pid: int, name: str = _NAME) -> None:
    """Move a process, and so everything that it will start, into the group of the cluster's processes."""
    (_tracking_mount() / name / _SYSTEM / "cgroup.procs").write_text(str(pid))


def members(name: str = _NAME) -> set[int]:
    """Return the ids of all processes of the cluster: daemons, shims and what runs in pods."""
    found: set[int] = set()
    for group in _groups(name):
        with suppress(FileNotFoundError):
            found.update(int(line) for line in (group / "cgroup.procs").read_text().split())
    return found


def kill_members(name: str = _NAME) -> None:
    """Kill every process of the cluster, repeatedly until none is left."""

    def none_left() -> bool:
        remaining = members(name)
        for pid in remaining:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not remaining

    wait_until("the last process of the cluster to end", none_left, seconds=20)


def remove(name: str = _NAME) -> None:
    """Remove all groups of the cluster. The kernel empties a killed process's group a moment later."""
    deadline = time.monotonic() + 10
    while groups := list(_groups(name)):
        for group in groups:
            with suppress(OSError):
                group.rmdir()
        if time.monotonic() > deadline:
            raise ToolError(f"cannot remove the control group {groups[-1]}")


def exist(name: str = _NAME) -> bool:
    """Return whether any group of the cluster exists."""
    return next(_groups(name), None) is not None


def _mounts() -> list[Path]:
    """List the hierarchies: one for each controller in version 1, a single one in version 2, or both."""
    lines = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
    return [Path(fields[1]) for fields in lines if fields[2] in ("cgroup", "cgroup2")]


def _tracking_mount() -> Path:
    """Choose the hierarchy that has the record. Version 1 has several; `pids` does not restrict its members."""
    mounts = _mounts()
    return next((mount for mount in mounts if mount.name == "pids"), mounts[0])


def _groups(name: str) -> Iterator[Path]:
    """Yield the cluster's groups in every hierarchy, the innermost first: only an empty one can be removed."""
    for mount in _mounts():
        for directory, _, _ in os.walk(mount / name, topdown=False):
            yield Path(directory)


def _weigh(group: Path, processors: int) -> None:
    """Give the nodes' pods as much as nodes with that many processors give them. By default, all count as one process.

    Beside two other busy processes, Ray did not start.
    """
    for setting, of_one, most in (("cpu.shares", 1024, 262_144), ("cpu.weight", 100, 10_000)):
        if (group / setting).exists():
            (group / setting).write_text(str(min(of_one * processors, most)))


def _create(group: Path) -> None:
    """Create one group with its parent's controllers (version 2) or CPUs and memory nodes (version 1)."""
    available = group.parent / "cgroup.controllers"
    if available.exists():
        wanted = " ".join(f"+{name}" for name in available.read_text().split())
        (group.parent / "cgroup.subtree_control").write_text(wanted)
    group.mkdir(exist_ok=True)
    for setting in ("cpuset.cpus", "cpuset.mems"):
        inherited = group.parent / setting
        if inherited.exists() and not available.exists():
            (group / setting).write_text(inherited.read_text())
