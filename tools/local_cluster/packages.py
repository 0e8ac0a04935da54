"""Debian packages: what the cluster takes from the distribution."""

import os
import shutil

from tools.console import run, say

# The command or file that shows that a package is there, for each package.
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
_PIP = {"python3-venv": "/usr/share/doc/python3-venv"}


def install_for_cluster() -> None:
    """Install what `up` needs."""
    install(_CLUSTER)


def install_for_images() -> None:
    """Install what `build-images` needs."""
    install(_IMAGES)


def install_for_venv() -> None:
    """Install what the system's Python needs to make a virtual environment."""
    install(_PIP)


def install(packages: dict[str, str]) -> None:
    """Install the packages that are missing, as the command or file of each shows."""
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
