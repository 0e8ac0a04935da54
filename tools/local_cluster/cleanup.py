"""Taking everything down, whether the cluster still runs as it was started or only its remains are there."""

import shutil
from pathlib import Path

from tools.console import ToolError
from tools.local_cluster import cgroups, network, processes
from tools.local_cluster.layout import CACHE, NODES, STATE


def remove_cluster() -> None:
    """End every process of the cluster and remove all that it made outside the cache.

    containerd alone is asked to end by itself, because its store is kept. A node's mounts need no unmounting:
    they are in the node's mount namespace, which ends with its last process.
    """
    for node in NODES:
        processes.stop(f"containerd-{node.name}")
    cgroups.kill_members()
    network.remove()
    cgroups.remove()
    if mounts := _mounts():
        raise ToolError(f"these mounts have to go before their files can be removed: {', '.join(mounts)}")
    shutil.rmtree(STATE, ignore_errors=True)


def leftovers() -> list[str]:
    """Name everything of a cluster that is on the machine, outside the cache."""
    found = [f"process {pid}" for pid in sorted(cgroups.members())]
    found += network.leftovers()
    found += [f"mount {mount}" for mount in _mounts()]
    found += ["control groups"] if cgroups.exist() else []
    found += [f"directory {STATE}"] if STATE.exists() else []
    return found


def _mounts() -> list[str]:
    """List the mounts under the cluster's directories that the host sees; there ought to be none, ever."""
    targets = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [target for target in targets if target.startswith((f"{STATE}/", f"{CACHE}/nodes/"))]
