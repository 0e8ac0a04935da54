"""The plugin for kubectl: the archive that krew installs, and the manifest for krew's index."""

import tarfile
from pathlib import Path
from string import Template

from tools.console import REPOSITORY, say
from tools.release import checksums
from tools.release.version import project

_KREW = REPOSITORY / "cli" / "krew"


def package(version: str, directory: Path) -> None:
    """Write the archive with the directory's wheel, and the manifest with the archive's digest."""
    say("packaging the plugin for kubectl")
    (wheel,) = directory.glob("*.whl")
    files = {
        "kubectl-workergroups": _KREW / "kubectl_workergroups.py",
        wheel.name: wheel,
        "cli.lock": REPOSITORY / "requirements" / "cli.lock",
        "LICENSE": REPOSITORY / "LICENSE",  # krew's index requires one
    }
    archive = directory / f"kubectl-workergroups-{version}.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        for name, file in files.items():
            packed.add(file, name, filter=_of_nobody)
    manifest = Template((_KREW / "workergroups.yaml").read_text())
    repository = project()["urls"]["Repository"]
    filled = manifest.substitute(repository=repository, version=version, sha256=checksums.digest(archive))
    (directory / "workergroups.yaml").write_text(filled)


def _of_nobody(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry
