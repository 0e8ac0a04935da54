"""The chart as Helm renders it."""

import shutil
import subprocess
import sys
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).parents[3]
CHART = REPOSITORY / "charts" / "workergroups"
IMAGES = ("--set=operator.image=example/operator:1", "--set=worker.image=example/worker:1")


class Refused(Exception):
    """Helm's own message."""


class Helm:
    """Helm on this chart."""

    def __init__(self, binary: str) -> None:
        self._binary = binary

    def render(self, *settings: str) -> list[dict]:
        """All manifests, hooks included; both images are given."""
        return list(filter(None, yaml.safe_load_all(self.run("template", "release", CHART, *IMAGES, *settings))))

    def run(self, command: str, *arguments: str | Path) -> str:
        """One command's output. An argument counts instead of the same one here."""
        kubernetes = ["--kube-version=1.35.0", "--namespace=somewhere"] if command == "template" else []
        done = subprocess.run([self._binary, command, *kubernetes, *arguments], capture_output=True, text=True)
        if done.returncode:
            raise Refused(done.stderr)
        return done.stdout


def installed_helm() -> str:
    """The machine's, or where `make cluster-up` has put one."""
    command = [sys.executable, "-m", "tools.local_cluster", "bin"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    binary = shutil.which("helm") or shutil.which("helm", path=done.stdout.strip())
    assert binary, "there is no helm: put one on PATH, or run `make cluster-up`, which builds one"
    return binary
