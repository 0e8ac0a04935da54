"""The Debian packages that the cluster needs."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from local_cluster.console import run, say

# For each package, a command that exists if the package is installed.
_CLUSTER = {
    "containerd": "containerd",
    "runc": "runc",
    "containernetworking-plugins": "/usr/lib/cni/ptp",
    "nftables": "nft",
    "conntrack": "conntrack",
    "iproute2": "ip",
    "procps": "sysctl",
    "openssl": "openssl",
    "ca-certificates": "update-ca-certificates",
}
_IMAGES = {"buildah": "buildah", "debootstrap": "debootstrap", "git": "git"}
_DOCKER = {"iptables": "iptables"}
_PIP = {"python3-venv": "/usr/share/doc/python3-venv"}


def install_for_cluster() -> None:
    """Install the packages that `up` needs."""
    _install(_CLUSTER)


def install_for_images() -> None:
    """Install the packages that `build-images` needs."""
    _install(_IMAGES)


def unpack(names: Sequence[str], directory: Path) -> None:
    """Unpack packages into a directory, without installing or starting anything."""
    archives = directory / "archives"
    archives.mkdir(parents=True)
    run(["apt-get", "update"])
    run(["apt-get", "download", *names], cwd=archives)
    for archive in archives.iterdir():
        run(["dpkg-deb", "--extract", archive, directory])
    shutil.rmtree(archives)


def install_for_docker() -> None:
    """Install what a Docker engine needs in addition to containerd and runc."""
    _install(_DOCKER)


def install_for_venv() -> None:
    """Install what the system's Python needs to create a virtual environment."""
    _install(_PIP)


def _install(packages: dict[str, str]) -> None:
    missing = [name for name, proof in packages.items() if not _present(proof)]
    if not missing:
        return
    say(f"installing Debian packages: {' '.join(missing)}")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    run(["apt-get", "update"], env=quiet)
    run(["apt-get", "install", "--yes", "--no-install-recommends", *missing], env=quiet)


def _present(proof: str) -> bool:
    if proof.startswith("/"):
        return os.path.exists(proof)
    return shutil.which(proof) is not None
