"""The plugin for kubectl, unpacked and linked as krew does it."""

import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from tools.release import version


@pytest.fixture
def command(released, tmp_path):
    """Krew's link to the plugin, in a home directory without anything else."""
    (archive,) = released.glob("kubectl-workergroups-*.tar.gz")
    store, link = tmp_path / "store" / "workergroups", tmp_path / "bin" / "kubectl-workergroups"
    with tarfile.open(archive) as packed:
        packed.extractall(store, filter="data")
    link.parent.mkdir()
    link.symlink_to(store / "kubectl-workergroups")
    # How this machine reaches an index of packages.
    pip = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
    pip.setdefault("PIP_CACHE_DIR", str(Path.home() / ".cache" / "pip"))
    environment = {"PATH": f"{link.parent}:/usr/bin:/bin", "HOME": str(tmp_path), **pip}

    def command(*words):
        return subprocess.run([link, *words], env=environment, capture_output=True, text=True, timeout=300)

    return command


def test_it_installs_its_packages_on_first_use_only(command):
    first, second = command("--version"), command("--version")
    assert (first.returncode, first.stdout.strip()) == (0, version.current()), first.stderr
    assert "installing Python packages into" in first.stderr
    assert (second.stdout, second.stderr) == (first.stdout, "")
    assert command("no-such-verb").returncode == 2
