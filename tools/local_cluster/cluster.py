"""The cluster as a whole: up, down, and what runs."""

import fcntl
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tools.console import ToolError, say
from tools.local_cluster import (
    cgroups,
    cleanup,
    components,
    control_plane,
    images,
    network,
    node,
    oci,
    packages,
    pki,
    processes,
)
from tools.local_cluster.layout import ADMIN_KUBECONFIG, CACHE, NODES, PAUSE_IMAGE, STATE

_COMPLETE = STATE / "complete"
_LOCK = Path("/run/lock/workergroups-cluster")


@contextmanager
def exclusive() -> Iterator[None]:
    """Prevent two commands from changing the cluster or its cache at the same time."""
    _LOCK.parent.mkdir(parents=True, exist_ok=True)
    with _LOCK.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another local_cluster command to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def up(*, with_images: bool) -> None:
    """Start the cluster, unless it runs. First remove what an unclean end has left."""
    if _is_running():
        say(f"the cluster is running; kubeconfig: {ADMIN_KUBECONFIG}")
        return
    packages.install_for_cluster()
    binaries = _build_with_images() if with_images else components.ensure_built()
    if remains := cleanup.leftovers():
        say(f"removing what an earlier cluster left: {_summary(remains)}")
        cleanup.remove_cluster()
    _start(binaries)
    _COMPLETE.touch()
    say(f"the cluster is up; kubeconfig: {ADMIN_KUBECONFIG}")


def _build_with_images() -> Path:
    """Build both at once: with a cold cache, binaries use all CPUs for minutes, while images mostly wait."""
    packages.install_for_images()
    with ThreadPoolExecutor() as threads:
        building = threads.submit(images.build, for_tests=False)
        binaries = components.ensure_built()
        building.result()
    return binaries


def down(*, purge: bool) -> None:
    """Remove the cluster, and check that nothing of it is left."""
    cleanup.remove_cluster()
    if remains := cleanup.leftovers():
        raise ToolError(f"could not remove everything; left: {_summary(remains)}")
    say("the cluster is down: no process, mount, control group, namespace or network link is left")
    if purge:
        shutil.rmtree(CACHE, ignore_errors=True)
        say(f"removed {CACHE}")


def status() -> None:
    """Print each daemon with its process id, and the nodes if the API server answers."""
    names = processes.names()
    if not names:
        print("the cluster is down")
    for name in names:
        pid = processes.pid(name)
        print(f"{name:24} {f'pid {pid}' if pid else f'ENDED, see {processes.log(name)}'}")
    if _is_running():
        print(control_plane.kubectl(components.binaries(), "get", "nodes", "--output=wide"), end="")


def _is_running() -> bool:
    """Return whether all of it runs; a cluster of other pinned versions does not count."""
    if not _COMPLETE.exists() or any(processes.pid(name) is None for name in processes.names()):
        return False
    return control_plane.ready(components.binaries())


def _start(binaries: Path) -> None:
    """Start everything: first what takes long, then wait for all of it together."""
    say("starting the control plane and the nodes' containerd")
    STATE.mkdir(parents=True)
    cgroups.create()
    network.create()
    pki.create()
    for each in NODES:
        node.start_containerd(each)
    control_plane.start_api_server(binaries)
    say("the API server is ready; starting controllers, kubelets, CoreDNS and KubeRay")
    oci.ensure_pause(binaries / "pause")
    for each in NODES:
        oci.load(PAUSE_IMAGE, each)
        node.start_kubelet(each, binaries)
    control_plane.start_controllers(binaries)
    control_plane.start_dns(binaries)
    control_plane.start_kuberay(binaries)
    for each in NODES:
        node.wait_until_registered(each, binaries)
        node.add_gpus(each, binaries)
    for each in NODES:
        node.wait_until_ready(each, binaries)
    say("all nodes are ready")
    control_plane.wait_until_usable(binaries)


def _summary(remains: list[str]) -> str:
    shown = ", ".join(remains[:6])
    return shown if len(remains) <= 6 else f"{shown} and {len(remains) - 6} more"
