"""The command line sends the files of a working directory that Ray's own command line would send."""

import io
import random
import zipfile

import pytest
from ray._private.ray_constants import get_runtime_env_default_excludes
from ray._private.runtime_env.packaging import _zip_files

from workergroups_client.jobs.package import pack

CAFE = "caf\N{LATIN SMALL LETTER E WITH ACUTE}"
NAMES = ["a", "b.py", "c.bin", "data", ".hidden", "x y", CAFE, "__pycache__", "venv"]
PATTERNS = [
    *("a", "a/", "/a", "*.py", "!b.py", "data/", "!data/a", "data/*", "!data/", "**/c.bin", "data/**", "!*/", "!a"),
    *("# no pattern", "", "\\#", "x y", "[ab]*", "a/**/b.py", ".h*", "!.hidden", "/data/a", "caf?", "b.py "),
]


def grow(directory, draw, depth=0):
    for name in draw.sample(NAMES, draw.randrange(1, 6)):
        path = directory / name
        if depth < 3 and draw.random() < 0.5:
            path.mkdir()
            grow(path, draw, depth + 1) if draw.random() < 0.8 else None
        else:
            path.write_text(name)
    for name in (".gitignore", ".rayignore"):
        if draw.random() < 0.4 and not (directory / name).exists():
            (directory / name).write_text("\n".join(draw.sample(PATTERNS, draw.randrange(1, 4))))


def by_ray(directory, excludes, archive):
    everything = [*get_runtime_env_default_excludes(), *excludes]
    _zip_files(str(directory), everything, str(archive), include_gitignore=True)
    return zipfile.ZipFile(archive).namelist()


def sent(directory, excludes):
    return zipfile.ZipFile(io.BytesIO(pack(directory, excludes).data)).namelist()


@pytest.mark.parametrize("pattern", [".*", "*\n!*.py", "**\n!train.py"])
def test_an_ignore_file_does_not_exclude_its_own_directory_as_it_does_in_ray(tmp_path, pattern):
    code = tmp_path / "code"
    code.mkdir()
    (code / ".gitignore").write_text(pattern)
    (code / "train.py").write_text("1")
    assert by_ray(code, [], tmp_path / "ray.zip") == []
    assert sent(code, []) == ["train.py"]


@pytest.mark.parametrize("seed", range(100))
def test_a_working_directory_is_sent_as_by_ray(tmp_path, seed):
    draw = random.Random(seed)
    directory, elsewhere = tmp_path / "code", tmp_path / "elsewhere"
    for each in (directory, elsewhere):
        each.mkdir()
        grow(each, draw)
    (directory / "linked").symlink_to(elsewhere, target_is_directory=True)
    (directory / "broken").symlink_to(tmp_path / "absent")
    (directory / "always.txt").write_text("so that something is left")
    excludes = draw.sample(PATTERNS, draw.randrange(3))
    expected = by_ray(directory, excludes, tmp_path / "ray.zip")
    assert sorted(sent(directory, excludes)) == sorted(expected)
