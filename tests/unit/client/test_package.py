"""What of a working directory is sent."""

import io
import os
import zipfile
from pathlib import Path

import pytest

from workergroups_client.errors import ClientError
from workergroups_client.jobs import package


@pytest.fixture
def directory(tmp_path):
    for name, text in {
        "train.py": "1",
        "lib/model.py": "2",
        "lib/.gitignore": "*.bin\n",
        "lib/weights.bin": "3",
        "weights.bin": "4",
        ".gitignore": "out/\n/notes.txt\n",
        "out/log": "5",
        "notes.txt": "6",
        "lib/notes.txt": "7",
        ".rayignore": "data\n",
        "data/set": "8",
        ".git/HEAD": "9",
        "lib/__pycache__/model.pyc": "10",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def names(packed):
    return sorted(zipfile.ZipFile(io.BytesIO(packed.data)).namelist())


def test_all_files_are_sent_but_those_that_git_and_ray_ignore(directory):
    assert names(package.pack(directory)) == [
        ".gitignore",
        ".rayignore",
        "lib/.gitignore",
        "lib/model.py",
        "lib/notes.txt",
        "train.py",
        "weights.bin",
    ]


def test_more_can_be_excluded(directory):
    assert names(package.pack(directory, ["*.bin", "lib", ".*"])) == ["train.py"]


def test_the_same_files_have_the_same_name_and_others_another(directory):
    first = package.pack(directory)
    (directory / "out" / "log").write_text("changed, and ignored")
    (directory / "train.py").touch()
    assert package.pack(directory) == first
    (directory / "train.py").write_text("changed")
    assert package.pack(directory).name != first.name


def test_a_script_stays_executable(directory):
    (directory / "run.sh").write_text("#!/bin/sh")
    (directory / "run.sh").chmod(0o755)
    (entry,) = [
        each for each in zipfile.ZipFile(io.BytesIO(package.pack(directory).data)).infolist() if "run" in str(each)
    ]
    assert entry.external_attr >> 16 & 0o777 == 0o755


def test_links_are_followed_and_empty_directories_stay(directory, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "shared.py").write_text("1")
    (directory / "linked").symlink_to(elsewhere, target_is_directory=True)
    (directory / "linked.py").symlink_to(elsewhere / "shared.py")
    (directory / "broken").symlink_to(elsewhere / "absent")
    (directory / "empty" / "inside").mkdir(parents=True)
    found = names(package.pack(directory))
    assert [name for name in found if "linked" in name or name[0] == "e"] == [
        "empty/inside/",
        "linked.py",
        "linked/shared.py",
    ]
    assert "broken" not in found


@pytest.mark.parametrize("target", [".", "lib"])
def test_a_link_to_what_contains_it_is_refused(directory, target):
    (directory / "lib" / "again").symlink_to(directory / target, target_is_directory=True)
    with pytest.raises(ClientError, match=r"lib/again is a link to a directory that contains it: exclude it"):
        package.pack(directory)
    assert package.pack(directory, ["again"])


def test_ignore_files_and_names_may_have_any_bytes(directory):
    (directory / ".gitignore").write_bytes(b"caf\xe9*\n")
    Path(os.fsdecode(os.fsencode(directory) + b"/caf\xe9.txt")).write_text("1")
    assert not [name for name in names(package.pack(directory)) if "caf" in name]
    (directory / ".gitignore").unlink()
    with pytest.raises(ClientError, match=r"caf\\udce9.txt' is not UTF-8: rename or exclude it"):
        package.pack(directory)


def test_what_is_too_large_is_refused_with_the_largest_files(directory, monkeypatch):
    monkeypatch.setattr(package, "MOST_BYTES", 2 << 20)
    (directory / "huge.pt").write_bytes(b"0" * (3 << 20))
    with pytest.raises(
        ClientError, match=r"has 3 MiB, and at most 2 MiB can be sent; the largest files: huge.pt \(3 MiB\)"
    ):
        package.pack(directory)


def test_an_archive_is_sent_as_it_is(directory):
    path = directory.parent / "code.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("train.py", "print(1)")
    packed = package.pack(path, ["*.py"])
    assert (packed.data, packed.name[-4:]) == (path.read_bytes(), ".zip")


@pytest.mark.parametrize(
    ("name", "said"), [("absent", "is neither a directory nor a .zip archive"), ("out", "has no files to send")]
)
def test_what_cannot_be_sent_is_refused(directory, name, said):
    (directory / "out" / "log").unlink()
    with pytest.raises(ClientError, match=said):
        package.pack(directory / name)
