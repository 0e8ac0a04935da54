"""The two images, as OCI archives of this machine's architecture, and what is in them."""

import json
import platform
import sys
from pathlib import Path

import yaml

from tools.console import REPOSITORY, run, say
from tools.local_cluster import oci
from tools.release import sbom

_VALUES = REPOSITORY / "charts" / "workergroups" / "values.yaml"
_IMAGES = ("workergroups-operator", "workergroups-worker")
# What OCI calls the architectures.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def build(version: str, directory: Path) -> None:
    """Build the images, and write an archive and a bill of materials for each."""
    registry = yaml.safe_load(_VALUES.read_text())["image"]["registry"]
    architecture = _ARCHITECTURES[platform.machine()]
    built = json.loads(run([sys.executable, "-m", "tools.local_cluster", "build-images"], show_progress=True))
    for name in _IMAGES:
        archive = directory / f"{name}-{version}-linux-{architecture}.tar"
        say(f"writing {archive.name} and its bill of materials")
        oci.write_archive(built[name], f"{registry}/{name}:{version}", archive)
        archive.with_suffix(".cdx.json").write_text(sbom.of_image(archive, name, version))
