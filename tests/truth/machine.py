"""Stop the local cluster's processes and links from outside, and register how to continue them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path

from tools.console import run
from tools.local_cluster import cgroups, processes
from tools.local_cluster.layout import ADMIN_KUBECONFIG

BUSY_CORES = "one busy process for each core"


def is_local() -> bool:
    """Return whether kubectl reaches the local cluster, and this process may signal its processes."""
    ours = os.environ.get("KUBECONFIG") == str(ADMIN_KUBECONFIG)
    return ours and os.geteuid() == 0 and processes.pid("kube-apiserver") is not None


def stop_daemon(name: str, undo: ExitStack) -> None:
    """Stop a daemon of the control plane."""
    pid = processes.pid(name)
    if pid is None:
        raise RuntimeError(f"{name} does not run")
    _stop([pid], undo)


def stop_node(node: str, undo: ExitStack) -> None:
    """Stop all processes of a node: kubelet, containerd, kube-proxy, shims, and those in its pods.

    Repeat until there are no new ones, since processes may start meanwhile.
    """
    stopped: set[int] = set()
    while new := set(_node_processes(node)) - stopped:
        _stop(sorted(new), undo)
        stopped |= new


def lose_node(node: str, undo: ExitStack) -> None:
    """Kill all processes in a node's pods and stop those of the node itself, as if its power was cut."""
    stop_node(node, undo)
    for pid in _pod_processes(node):
        _signal(pid, signal.SIGKILL)


def stop_in_container(container_id: str, words: str, undo: ExitStack) -> None:
    """Stop the processes of a container whose command line has these words.

    A process in the container cannot stop the container's first process.
    """
    pids = [pid for pid in _in_container(container_id) if words in _command(pid)]
    if not pids:
        raise RuntimeError(f"no process {words!r} in container {container_id}")
    _stop(pids, undo)


def kill_container(container_id: str) -> None:
    """Kill all processes of a container, as the kernel does when it has no memory left."""
    pids = _in_container(container_id)
    if not pids:
        raise RuntimeError(f"no process in container {container_id}")
    for pid in pids:
        _signal(pid, signal.SIGKILL)


def cut_off(node: str, undo: ExitStack) -> None:
    """Set a node's link to the others down; the node's end keeps its addresses and routes."""
    link = f"wg-{node}"
    undo.callback(run, ["ip", "link", "set", link, "up"])
    run(["ip", "link", "set", link, "down"])


def cut_off_pod(container_id: str) -> None:
    """Set the link of a container's pod down for good: nobody hears any more that its processes end."""
    run(["nsenter", f"--target={_in_container(container_id)[0]}", "--net", "ip", "link", "set", "eth0", "down"])


def keep_busy(undo: ExitStack) -> None:
    """Start one process for each core that does nothing but count."""
    script = ["import os", f"while os.getppid() == {os.getpid()}:", "    for _ in range(10**6): pass"]
    for _ in range(os.cpu_count() or 1):
        pid = os.posix_spawn("/usr/bin/env", ["env", "python3", "-c", "\n".join(script)], os.environ)
        undo.callback(_end, pid)


def _end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _stop(pids: Iterable[int], undo: ExitStack) -> None:
    for pid in pids:
        undo.callback(_signal, pid, signal.SIGCONT)
        _signal(pid, signal.SIGSTOP)


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _in_container(container_id: str) -> list[int]:
    name = container_id.rpartition("/")[2]
    return [pid for pid in cgroups.members() if name in _read(pid, "cgroup")]


def _node_processes(node: str) -> list[int]:
    """Return the processes in the node's pods, and those in the mount namespace of its containerd."""
    containerd = processes.pid(f"containerd-{node}")
    home = None if containerd is None else _mounts(containerd)
    return [*_pod_processes(node), *(pid for pid in cgroups.members() if home is not None and _mounts(pid) == home)]


def _pod_processes(node: str) -> list[int]:
    root = f"{cgroups.kubelet_root(node)}/"
    return [pid for pid in cgroups.members() if root in _read(pid, "cgroup")]


def _mounts(pid: int) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")
    except OSError:
        return None


def _read(pid: int, file: str) -> str:
    try:
        return Path(f"/proc/{pid}/{file}").read_text(errors="replace")
    except OSError:
        return ""


def _command(pid: int) -> str:
    return _read(pid, "cmdline").replace("\0", " ")
