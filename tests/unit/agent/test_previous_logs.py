"""The last lines of dead ranks arrive as they were, and take bounded room."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.unit.agent.odd_files import CONTENTS, NO_FILES
from workergroups_agent.files import UnreadableFile
from workergroups_agent.previous_logs import PreviousLogs
from workergroups_api.report import DeadRank
from workergroups_api.vocabulary import REPORTS

TEXT = b"\0 \x1b[31mred\r\xff\n{}\n\n"


def dead(rank=0, incarnation=1, uid="uid-g", reason="ProcessDied"):
    return DeadRank(
        uid=uid,
        incarnation=incarnation,
        rank=rank,
        reason=reason,
        message="killed by signal 9",
        pod="p-worker-b",
        died=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    )


@pytest.fixture
def lines(tmp_path):
    lines = PreviousLogs(tmp_path / REPORTS)
    lines.begin()
    return lines


def test_what_is_written_arrives(lines):
    lines.write(dead(), b"an earlier look")
    lines.write(dead(), TEXT)
    assert lines.read(dead().key) == (dead(), TEXT)
    assert lines.kept() == {dead().key}


def test_a_file_begins_with_a_line_of_json_that_any_python_can_read(lines, tmp_path):
    lines.write(dead().model_copy(update={"pod": None}), b"its lines")
    first, _, text = (tmp_path / REPORTS / "uid-g_1_0.lines").read_bytes().partition(b"\n")
    assert text == b"its lines"
    assert json.loads(first) == {
        "uid": "uid-g",
        "birth": None,
        "incarnation": 1,
        "rank": 0,
        "reason": "ProcessDied",
        "message": "killed by signal 9",
        "pod": None,
        "died": "2026-01-02T03:04:05+00:00",
    }


def test_nothing_exists_before_anybody_listens(tmp_path):
    lines = PreviousLogs(tmp_path / REPORTS)
    assert (lines.since(), lines.kept(), lines.read(dead().key), lines.of_group("uid-g")) == (None, set(), None, [])


def test_what_was_kept_outlives_the_executor(lines, tmp_path):
    lines.write(dead(), TEXT)
    following = PreviousLogs(tmp_path / REPORTS)
    following.begin()
    assert following.of_group("uid-g") == [dead()]


def test_of_a_group_the_latest_incarnations_are_kept(lines):
    for incarnation in (9, 10, 11):
        lines.write(dead(incarnation=incarnation), TEXT)
    lines.write(dead(uid="uid-h"), TEXT)
    lines.make_room()
    assert [each.incarnation for each in lines.of_group("uid-g")] == [10, 11]
    assert lines.of_group("uid-h") == [dead(uid="uid-h")]


def test_the_oldest_go_when_there_are_too_many(tmp_path):
    lines = PreviousLogs(tmp_path / REPORTS, max_bytes=3 * 4096 - 1)
    lines.begin()
    for rank in range(5):
        lines.write(dead(rank), b"x" * 1000)
        os.utime(lines._path(dead(rank).key), (rank, rank))
    lines.make_room()
    assert [each.rank for each in lines.of_group("uid-g")] == [3, 4]


def test_files_of_others_hurt_nobody(lines, tmp_path):
    for name, text in {
        "x.lines": "",
        "uid-g_1_2.lines": "[" * 100_000,
        "uid-g_1_3.lines": "{}",
        "a_b_c.lines": "{",
    }.items():
        (tmp_path / REPORTS / name).write_text(text)
    lines.write(dead(), TEXT)
    lines.make_room()
    assert lines.of_group("uid-g") == [dead()]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("put", NO_FILES)
def test_whatever_has_a_files_name_keeps_nobody_waiting(lines, tmp_path, put):
    directory = tmp_path / REPORTS
    (directory / "since").unlink()
    for name in ("since", "uid-g_1_2.lines"):
        put(directory / name)
    with pytest.raises(UnreadableFile, match="since"):
        lines.since()
    with pytest.raises(UnreadableFile, match="uid-g_1_2"):
        lines.read(("uid-g", 1, 2))
    lines.write(dead(), TEXT)
    assert lines.of_group("uid-g") == [dead()]


@settings(max_examples=40)
@given(content=CONTENTS)
def test_whatever_a_file_holds_it_is_read_or_told_why_not(content):
    with tempfile.TemporaryDirectory() as directory:
        lines = PreviousLogs(Path(directory))
        for name in ("since", "uid-g_1_2.lines"):
            (Path(directory) / name).write_bytes(content)
        for read in (lines.since, lambda: lines.read(("uid-g", 1, 2)), lambda: lines.of_group("uid-g")):
            with contextlib.suppress(UnreadableFile):
                json.dumps(read(), default=repr)


def test_of_a_full_directory_only_last_lines_are_read(lines, tmp_path):
    for number in range(3000):
        (tmp_path / REPORTS / f"uid-g_1_{number}.lines\n").touch()
    lines.write(dead(), TEXT)
    assert lines.kept() == {dead().key}


def test_the_command_line_is_answered(lines, tmp_path):
    def ask(*words):
        command = [sys.executable, "-m", "workergroups_agent.previous_logs", *words]
        environment = {**os.environ, "WORKERGROUPS_EXCHANGE": str(tmp_path)}
        printed = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=60).stdout
        return json.loads(printed)["answer"]

    lines.write(dead(3), TEXT)
    answer = ask("uid-g")
    assert answer["since"] == lines.since()
    assert [DeadRank(**each) for each in answer["dead"]] == [dead(3)]
    (tmp_path / REPORTS / "uid-g_1_5.lines").mkdir()
    assert ask("uid-g", "1", "3", "4", "5") == [
        TEXT.decode(errors="replace"),
        "",
        "(uid-g_1_5.lines cannot be read: it is not a regular file)",
    ]
