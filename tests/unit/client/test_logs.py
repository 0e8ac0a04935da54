"""Lines of log files, of one or of several."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from workergroups_client.errors import ClientError
from workergroups_client.pods.logs import MOST_AT_ONCE, LogFile, LogPart, read, recent, written_at


class Ray:
    """Ray's log service: pieces of files by their names."""

    def __init__(self, **files):
        self.files = files

    def stream(self, path, lines, node_id, filename):
        for piece in self.files.get(filename, [None]):
            if piece is None:
                raise ClientError(f"there is no {filename}")
            yield piece


RAY = Ray(one=[b"a\nb", b"c\nd"], two=[b"e\n", None], empty=[])


def lines(*names, follow=False):
    return list(read(RAY, {name: [LogFile.on_node("node", name)] for name in names}, LogPart(follow)))


def test_lines_are_whole_whatever_the_pieces():
    assert lines("one") == [("one", b"a"), ("one", b"bc"), ("one", b"d")]


@pytest.mark.parametrize("follow", [False, True])
def test_a_file_that_cannot_be_read_hides_no_other(follow):
    said = lines("two", "empty", "one", follow=follow)
    assert sorted(said) == [
        *(("one", line) for line in (b"a", b"bc", b"d")),
        ("two", b"(the rest of this log cannot be read: there is no two)"),
        ("two", b"e"),
    ]


def test_a_single_file_that_is_not_there_is_an_error():
    with pytest.raises(ClientError, match="there is no absent"):
        lines("absent")


def test_more_than_ray_serves_at_once_are_refused():
    with pytest.raises(ClientError, match="81 files cannot be followed at once, only 80: choose some ranks"):
        lines(*map(str, range(MOST_AT_ONCE + 1)), follow=True)


NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("line", "age"),
    [
        (b"[2026-01-01 11:50:00,123 I 12 12] (raylet) main.cc:1: started", 600),
        (b"2026-01-01 11:59:00,001 - INFO - step", 60),
        (b"INFO 2026-01-01 11:59:59 train.py:3] step", 1),
        (b"2026-01-01T11:00:00Z step", 3600),
        (b"2026-01-01T13:00:00.5+02:00 step", 3600),
        (b"2026-99-99 11:00:00 step", None),
        (b"step 2026-01-01 11:00:00", None),
        (b"", None),
        (b"\xff\xfe", None),
    ],
)
def test_the_time_of_a_line_is_at_its_beginning(line, age):
    assert written_at(line) == (None if age is None else NOW - age)


def test_lines_since_a_time_are_those_and_what_follows_them():
    old, new = b"2026-01-01 11:00:00 old", b"2026-01-01 11:59:00 new"
    log = [b"from nobody knows when", old, b"  of the old one", new, b"  of the new one", old, new]
    assert list(recent(log, NOW - 120)) == [log[0], new, b"  of the new one", new]


@pytest.mark.parametrize(
    ("part", "lines"),
    [
        (LogPart(), 1000),
        (LogPart(tail=5), 5),
        (LogPart(since=NOW), 100_000),
        (LogPart(tail=5, since=NOW), 5),
        (LogPart(tail=10**30), 2**31 - 1),
    ],
)
def test_as_many_lines_as_wanted_are_read(part, lines):
    asked = []
    ray = SimpleNamespace(stream=lambda path, lines, **_: asked.append(lines) or [b"a\n"])
    assert list(read(ray, {"": [LogFile.on_node("node", "one")]}, part)) == [("", b"a")]
    assert asked == [lines]
