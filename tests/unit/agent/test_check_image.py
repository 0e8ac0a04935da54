"""What is said of an image that cannot run Ray, and what is kept of one that can."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from workergroups_agent import check_image

PACKAGES = Path(__file__).parents[3] / "worker_image"
GOOD = {"ray": "2.52.0", "pydantic": "2.5.3"}


@pytest.fixture
def image(tmp_path, monkeypatch):
    """Have this Python find these distributions and no others."""

    def has(*, dashboard: bool = True, **versions: str) -> None:
        for name, version in versions.items():
            metadata = tmp_path / f"{name}-{version}.dist-info" / "METADATA"
            metadata.parent.mkdir()
            metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        if dashboard:
            (tmp_path / "aiohttp_cors.py").touch()
        monkeypatch.setattr(sys, "path", [str(tmp_path)])

    return has


@pytest.mark.parametrize("ray", ["2.52.0", "2.60.0", "2.100.1", "3.0.0rc1", "2.53.0.dev0"])
def test_an_image_with_a_ray_that_knows_tokens_lacks_nothing(image, ray):
    image(**GOOD | {"ray": ray})
    assert check_image.what_is_lacking() == ""
    assert check_image.found().startswith(f"ray {ray} python 3.")


@pytest.mark.parametrize(
    ("has", "said"),
    [
        ({"pydantic": "2.5"}, "no Ray that"),
        (GOOD | {"ray": "2.51.2"}, "has Ray 2.51.2, and needs 2.52 or later, the first with token authentication"),
        (GOOD | {"ray": "2.9.3"}, "has Ray 2.9.3"),
        (GOOD | {"dashboard": False}, "Ray without the dashboard, which KubeRay's probes ask: install ray[default]"),
        (GOOD | {"pydantic": "1.10.22"}, "has pydantic 1.10.22, and needs 2.5 or later"),
        ({"ray": "2.60.0"}, "has no pydantic"),
    ],
)
def test_what_an_image_lacks_is_said(image, has, said):
    image(**has)
    assert said in check_image.what_is_lacking()


def test_an_old_python_is_said(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 18, "final", 0))
    assert check_image.what_is_lacking() == "the image has Python 3.9.18, and needs 3.10 or later"


def test_what_the_image_had_on_its_path_comes_after_the_library_and_its_own_sitecustomize_runs(tmp_path, monkeypatch):
    library, theirs = tmp_path / "library", tmp_path / "theirs"
    for directory in (library, theirs):
        directory.mkdir()
    (theirs / "sitecustomize.py").write_text("import os\nos.environ['CUSTOMIZED'] = 'yes'\n")
    monkeypatch.setattr(check_image, "LIBRARY", library)
    check_image.keep_python_path(str(theirs))
    program = "import json, os, sys; print(json.dumps([os.environ.get('CUSTOMIZED'), sys.path]))"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(library)}
    command = [sys.executable, "-c", program]
    customized, path = json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    assert customized == "yes"
    assert path[1:3] == [str(library), str(theirs)]


@pytest.mark.parametrize("theirs", ["", ":"])
def test_an_image_without_a_path_of_its_own_gets_no_sitecustomize(tmp_path, monkeypatch, theirs):
    monkeypatch.setattr(check_image, "LIBRARY", tmp_path)
    check_image.keep_python_path(theirs)
    assert not list(tmp_path.iterdir())
