"""A file of another process is read as a whole and within limits, or not at all, and never keeps its reader waiting."""

import os

import pytest

from tests.unit.agent.odd_files import NO_FILES, put_directory
from workergroups_agent.files import UnreadableFile, read_file, stamp, write_file


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "made" / "a.json"
    write_file(path, b"\0first")
    write_file(path, b"\0second")
    assert read_file(path, 10) == b"\0second"
    assert os.listdir(path.parent) == ["a.json"]


def test_what_nobody_wrote_is_not_there(tmp_path):
    assert (read_file(tmp_path / "a", 10), stamp(tmp_path / "a")) == (None, None)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("put", NO_FILES)
def test_only_a_regular_file_is_read_and_the_reason_names_it(tmp_path, put):
    path = tmp_path / "a.json"
    put(path)
    with pytest.raises(UnreadableFile, match=r"a\.json cannot be read: \w"):
        read_file(path, 10)
    assert stamp(path) is not None


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"x" * 11)
    with pytest.raises(UnreadableFile, match="more than 10 bytes"):
        read_file(path, 10)
    assert read_file(path, 11) == b"x" * 11


def test_a_file_instead_of_the_directory_is_reported(tmp_path):
    (tmp_path / "orders").touch()
    with pytest.raises(UnreadableFile, match="Not a directory"):
        read_file(tmp_path / "orders" / "a.json", 10)
    with pytest.raises(OSError, match="exists"):
        write_file(tmp_path / "orders" / "a.json", b"")


def test_the_stamp_changes_with_a_write_and_with_who_may_read(tmp_path):
    path = tmp_path / "a.json"
    stamps = []
    for _ in range(3):
        write_file(path, b"the same")
        stamps.append(stamp(path))
    path.chmod(0o400)
    stamps.append(stamp(path))
    assert len(set(stamps)) == 4


@pytest.mark.timeout(20)
@pytest.mark.parametrize("put", [put for put in NO_FILES if put is not put_directory])
def test_what_lies_in_the_way_of_a_write_is_replaced(tmp_path, put):
    put(tmp_path / "a.json")
    put(tmp_path / "a.draft")
    write_file(tmp_path / "a.json", b"content")
    assert read_file(tmp_path / "a.json", 10) == b"content"


def test_a_directory_in_the_way_of_a_write_is_reported_and_does_not_last(tmp_path):
    path = tmp_path / "a.json"
    put_directory(path)
    with pytest.raises(OSError, match="directory"):
        write_file(path, b"content")
    assert sorted(os.listdir(tmp_path)) == ["a.json"]
    (path / "full").unlink()
    path.rmdir()
    write_file(path, b"content")
    assert read_file(path, 10) == b"content"
