"""The version lives in pyproject.toml; what else needs it is written from there."""

import importlib.metadata
import re
import shutil

import pytest
import yaml

from tools.release import notes, version

CHART = "charts/workergroups/Chart.yaml"
METADATA = "worker_image/workergroups.dist-info"


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The files that `make generate` writes when the version becomes 7.8.9."""
    monkeypatch.setattr(version, "current", lambda: "7.8.9")
    version.write_copies(tmp_path)
    return tmp_path


def test_the_chart_and_its_application_have_the_version(files):
    chart = yaml.safe_load((files / CHART).read_text())
    assert (chart["version"], chart["appVersion"], chart["apiVersion"]) == ("7.8.9", "7.8.9", "v2")


def test_pods_have_the_version(files):
    found = importlib.metadata.Distribution.at(files / METADATA)
    assert (found.name, found.version) == ("workergroups", "7.8.9")


@pytest.mark.parametrize(
    ("wanted", "released", "changed", "reason"),
    [
        ("0.2.0", [], "", None),
        ("0.10.0", ["0.2.0", "0.9.1"], "", None),
        ("0.9.1", ["0.2.0", "0.9.1"], "", "CHANGELOG.md has version 0.9.1: choose a version after it"),
        ("0.9.0", ["0.2.0", "0.9.1"], "", "CHANGELOG.md has version 0.9.1: choose a version after it"),
        ("0.2", [], "", "three numbers"),
        ("0.2.0rc1", [], "", "three numbers"),
        (None, [], "", "VERSION is missing: give three numbers"),
        ("0.2.0", [], " M README.md\n", "commit or remove these changes first.*\n M README.md$"),
    ],
)
def test_a_release_is_refused_before_anything_changes(wanted, released, changed, reason):
    trouble = version.why_not(wanted, released, changed)
    assert trouble is None if reason is None else re.search(f"(?s){reason}", trouble)


def test_the_versions_of_a_changelog_are_found():
    assert notes.released("# Changelog\n\n## 0.2.0\n\n### Fixed\n\n- x\n\n## 0.1.0\n") == ["0.2.0", "0.1.0"]


def test_changing_the_version_changes_one_line_of_the_project(tmp_path, monkeypatch):
    for path in ("pyproject.toml", CHART, f"{METADATA}/METADATA"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(version.REPOSITORY / path, tmp_path / path)
    before = (tmp_path / "pyproject.toml").read_text().splitlines()
    monkeypatch.setattr(version, "REPOSITORY", tmp_path)
    version.change("7.8.9")
    after = (tmp_path / "pyproject.toml").read_text().splitlines()
    assert len([line for line in after if line not in before]) == 1
    assert version.current() == yaml.safe_load((tmp_path / CHART).read_text())["version"] == "7.8.9"
