"""Remove everything, whether the cluster still runs or only parts of it are left."""

import shutil
from pathlib import Path

from tools.console import ToolError
from tools.local_cluster import cgroups, network, processes
from tools.local_cluster.layout import CACHE, NODES, STATE


def remove_cluster() -> None:
    """End every process of the cluster and remove everything that it created outside the cache.

    Only containerd gets time to stop, because its store is kept. A node's mounts need no unmounting:
    they are in the node's mount namespace, which ends with its last process.
    """
    for node in NODES:
        processes.stop(f"containerd-{node.name}")
    cgroups.kill_members()
    network.remove()
    cgroups.remove()
    if mounts := _mounts():
        raise ToolError(f"unmount these before their files can be removed: {', '.join(mounts)}")
    shutil.rmtree(STATE, ignore_errors=True)


def leftovers() -> list[str]:
    """Return what exists of a cluster on this machine, outside the cache."""
    found = [f"process {pid}" for pid in sorted(cgroups.members())]
    found += network.leftovers()
    found += [f"mount {mount}" for mount in _mounts()]
    found += ["control groups"] if cgroups.exist() else []
    found += [f"directory {STATE}"] if STATE.exists() else []
    return found


def _mounts() -> list[str]:
    """Return the mounts under the cluster's directories that the host sees; there should never be any."""
    targets = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [target for target in targets if target.startswith((f"{STATE}/", f"{CACHE}/nodes/"))]
