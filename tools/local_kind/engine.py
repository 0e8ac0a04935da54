"""Debian's Docker engine, unpacked and not installed, in its own process, mount and network namespaces.

Its bridges, firewall rules and mounts are in the namespaces, which end with their first process. On the host, there are
only a control group and a directory.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tools.console import ToolError, run, say, tail, wait_until
from tools.local_cluster import cgroups
from tools.local_cluster.packages import install_for_cluster
from tools.local_kind import packages
from tools.local_kind.layout import CONTROL_GROUP, DEBIAN, HERE, SOCKET, STATE

_CONTAINERS = "containers"
_LOG = STATE / "dockerd.log"
_PID = STATE / "engine.pid"
# A name server that slirp4netns offers: it asks those of the host.
_SLIRP_DNS = "10.0.2.3"
# The first process; it gets a configuration and a descriptor of the host's network. What is under /run is the engine's
# own, as its mounts are. slirp4netns lets connections out without any rule or forwarding on the host.
_FIRST = """
mount -t tmpfs tmpfs /run
ip link set lo up
nsenter --net=/proc/self/fd/$2 slirp4netns --configure --mtu=65520 --disable-host-loopback $$ tap0 &
exec dockerd --config-file "$1"
"""


def start() -> None:
    """Start the engine and wait until it answers."""
    say("starting a Docker engine of Debian's packages")
    install_for_cluster()
    packages.provide()
    config = STATE / "daemon.json"
    config.write_text(json.dumps(_config(), indent=2))
    cgroups.create(CONTROL_GROUP, (_CONTAINERS,))
    _PID.write_text(str(_start(config)))
    try:
        wait_until("the Docker engine to answer", _answers, seconds=60)
    except ToolError as error:
        raise ToolError(f"{error}\n{tail(_LOG)}") from None


def is_running() -> bool:
    """Return whether the engine was started and answers."""
    return SOCKET.exists() and _answers()


def environment() -> dict[str, str]:
    """Return the variables that docker and kind need to reach it."""
    return {"DOCKER_HOST": f"unix://{SOCKET}", "PATH": f"{DEBIAN}/usr/bin:{os.environ['PATH']}"}


def alongside(argv: Sequence[str], *, network: bool = False) -> list[str]:
    """Return a command line that ends with the engine at the latest, as its mounts do.

    On request it runs in the engine's network, where the ports of containers are.
    """
    namespaces = Path("/proc", _PID.read_text(), "ns")
    enter = [f"--pid={namespaces / 'pid_for_children'}", *([f"--net={namespaces / 'net'}"] if network else [])]
    return ["nsenter", *enter, "unshare", "--mount-proc", *argv]


def docker(*arguments: str | Path) -> str:
    """Run docker on the engine."""
    return run(["docker", *arguments], env=environment())


def remove() -> None:
    """End every process of the engine, and with them containers, networks and mounts; remove all of its files."""
    if STATE.exists():
        cgroups.kill_members(CONTROL_GROUP)
        cgroups.remove(CONTROL_GROUP)
        shutil.rmtree(STATE)


def _start(config: Path) -> int:
    namespaces = ["--pid", "--mount-proc", "--net", "--fork", "--kill-child"]
    path = f"{DEBIAN}/usr/sbin:{DEBIAN}/usr/bin:{os.environ['PATH']}"
    libraries = ":".join(sorted({str(file.parent) for file in DEBIAN.rglob("*.so.*")}))
    with _LOG.open("w") as log:
        host_network = os.open("/proc/self/ns/net", os.O_RDONLY)
        child = subprocess.Popen(
            ["unshare", *namespaces, "sh", "-e", "-c", _FIRST, "sh", str(config), str(host_network)],
            env={**os.environ, "PATH": path, "LD_LIBRARY_PATH": libraries},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # It is in the control group before it begins, and so is everything that it starts.
            preexec_fn=lambda: cgroups.adopt(os.getpid(), CONTROL_GROUP),
            pass_fds=(host_network,),
        )
        os.close(host_network)
    return child.pid


def _config() -> dict[str, object]:
    return {
        "hosts": [f"unix://{SOCKET}"],
        "data-root": str(STATE / "docker"),
        "exec-root": str(STATE / "run"),
        "pidfile": str(STATE / "dockerd.pid"),
        "deprecated-key-path": str(STATE / "key.json"),
        "storage-driver": "overlay2",
        "cgroup-parent": f"/{CONTROL_GROUP}/{_CONTAINERS}",
        "dns": [_SLIRP_DNS],
        # Root may lack the right to lower it.
        "oom-score-adjust": 0,
        "runtimes": {"bounded": {"path": str(HERE / "node" / "runc")}},
        "default-runtime": "bounded",
    }


def _answers() -> bool:
    try:
        docker("version")
    except ToolError:
        return False
    return True
