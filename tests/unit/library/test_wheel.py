"""What users install."""

from __future__ import annotations

import configparser
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]


def test_the_wheel_holds_the_library_and_the_command_line_and_nothing_else(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=REPOSITORY, capture_output=True, check=True, timeout=60)
    (wheel,) = tmp_path.glob("*.whl")
    folders = {Path(name).parts[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {folder for folder in folders if not folder.endswith(".dist-info")} == {
        "workergroups",
        "workergroups_api",
        "workergroups_cli",
        "workergroups_client",
        "workergroups_common",
    }


def test_verl_finds_its_plugin_in_pods_as_in_an_installation():
    folder, in_pods = REPOSITORY / "worker_image" / "workergroups.dist-info", configparser.ConfigParser()
    in_pods.read(folder / "entry_points.txt")
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert dict(in_pods["verl.plugins"]) == project["entry-points"]["verl.plugins"]
    assert f"Version: {project['version']}\n" in (folder / "METADATA").read_text()
