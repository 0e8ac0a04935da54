"""Wheel, source distribution and chart."""

import os
import sys
from pathlib import Path

from tools.console import REPOSITORY, run, say
from tools.local_cluster import components

_CHART = REPOSITORY / "charts" / "workergroups"


def build_python(directory: Path) -> None:
    """Build the source distribution, and the wheel from it. Check both as the package index will."""
    say("building the source distribution and the wheel")
    run([sys.executable, "-m", "build", "--no-isolation", f"--outdir={directory}", REPOSITORY])
    run([sys.executable, "-m", "twine", "check", "--strict", *directory.glob("*.whl"), *directory.glob("*.tar.gz")])


def package_chart(directory: Path) -> None:
    """Write the chart's archive. Helm is the machine's, or the local cluster's."""
    say("packaging the chart")
    helm = {"PATH": f"{os.environ['PATH']}:{components.binaries()}"}
    run(["helm", "lint", "--strict", _CHART], helm)
    run(["helm", "package", _CHART, f"--destination={directory}"], helm)
