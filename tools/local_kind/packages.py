"""Debian's packages that the engine needs and the local cluster does not."""

import shutil

from tools.console import run
from tools.local_cluster.packages import install
from tools.local_kind.layout import DEBIAN

_INSTALLED = {"iptables": "iptables"}
_UNPACKED = ("docker.io", "libdevmapper1.02.1", "slirp4netns", "libslirp0")


def provide() -> None:
    """Install what is harmless, and unpack the rest into a directory of ours, where nothing starts automatically."""
    install(_INSTALLED)
    archives = DEBIAN / "archives"
    archives.mkdir(parents=True)
    run(["apt-get", "update"])
    run(["apt-get", "download", *_UNPACKED], cwd=archives)
    for archive in archives.iterdir():
        run(["dpkg-deb", "--extract", archive, DEBIAN])
    shutil.rmtree(archives)
