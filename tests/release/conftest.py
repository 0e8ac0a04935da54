"""What `make release` builds from this checkout, and clean places in which it is installed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.chart.helm import Helm, installed_helm

REPOSITORY = Path(__file__).parents[2]


class CleanPlace:
    """A virtual environment and a home directory of their own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        venv = directory / "venv"
        # Nothing of the tests' own environment, nor a Ray that somebody else has started on this machine.
        self._environment = {"PATH": f"{venv}/bin:/usr/bin:/bin", "HOME": str(directory), "RAY_ADDRESS": "local"}
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)

    def install(self, requirement: str) -> None:
        """As `pip install` does, but with the packages that uv has already."""
        uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", f"--python={self.directory}/venv"]
        subprocess.run([*uv, requirement], check=True)

    def run(self, *command: str | Path) -> str:
        """What a command prints, which must succeed."""
        done = subprocess.run(
            command, cwd=self.directory, env=self._environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def dry_run(directory: Path, *options: str) -> Path:
    """The directory, with what a dry run builds."""
    command = [sys.executable, "-m", "tools.release", "--dry-run", f"--to={directory}", *options]
    subprocess.run(command, cwd=REPOSITORY, check=True)
    return directory


@pytest.fixture(scope="session")
def released(tmp_path_factory) -> Path:
    return dry_run(tmp_path_factory.mktemp("release"), "--without-images")


@pytest.fixture
def clean_place(tmp_path) -> CleanPlace:
    return CleanPlace(tmp_path)


@pytest.fixture(scope="session")
def helm() -> Helm:
    return Helm(installed_helm())
