"""Lines of log files, of one or of several."""

import pytest

from workergroups_client.errors import ClientError
from workergroups_client.logs import MOST_AT_ONCE, LogFile, read


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
    return list(read(RAY, {name: [LogFile.on_node("node", name)] for name in names}, follow=follow))


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
