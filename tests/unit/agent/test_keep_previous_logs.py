"""What a rank printed last is kept when it dies, and for as long as somebody may ask for it."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.agent.ray_world import rank, reborn, state
from workergroups.naming import RankName
from workergroups.ray_private.death import Death
from workergroups_agent.observer.keep_previous_logs import (
    FOUND_SECONDS,
    GONE_SECONDS,
    SETTLE_SECONDS,
    PreviousLogKeeper,
    last_words,
)
from workergroups_agent.observer.printed_lines import Tails
from workergroups_agent.previous_logs import PreviousLogs
from workergroups_api.report import MAX_LAST_WORDS


class World:
    """A keeper, what it is told, and what it keeps."""

    def __init__(self, directory: Path) -> None:
        self.lines = PreviousLogs(directory / "lines")
        self.time = 1000.0
        self.start()

    def start(self) -> None:
        """An executor begins."""
        self.tails = Tails()
        self.keeper = PreviousLogKeeper(self.lines, self.tails, lambda: self.time)

    def look(self, *ranks, seconds=0.25, **more):
        self.time += seconds
        self.keeper.look(state(ranks=ranks, **more))

    def prints(self, number, *lines):
        self.tails.add(process(number), lines)

    def kept(self):
        return {
            (dead.incarnation, dead.rank): (dead.reason, self.lines.read(dead.key)[1].decode())
            for dead in self.lines.of_group("uid-g")
        }


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def process(number):
    return ("10.0.0.1", 100 + number)


def a_rank(number=0, state="ALIVE", incarnation=1, **more):
    name = RankName("g", "uid-g", incarnation, number, 4)
    return replace(rank(number, state, name=name, **more), process=process(number))


def dead(number=0, **more):
    return a_rank(number, "DEAD", **more)


def a_successor(number=0):
    return replace(reborn(number, 1), process=process(7))


def test_a_rank_that_dies_leaves_its_last_lines(world):
    world.look(a_rank(0), a_rank(1))
    world.prints(0, "of rank 0")
    world.prints(1, "of rank 1", "the end")
    world.look(a_rank(0), dead(1))
    assert world.kept() == {(1, 1): ("ProcessDied", "of rank 1\nthe end\n")}
    (kept,) = world.lines.of_group("uid-g")
    assert (kept.pod, kept.message) == ("p-worker-b", "killed by signal 9")


def test_what_comes_soon_after_the_death_is_kept_too(world):
    world.look(a_rank())
    world.prints(0, "before")
    world.look(dead())
    world.prints(0, "late")
    world.look(dead())
    assert world.kept() == {(1, 0): ("ProcessDied", "before\nlate\n")}
    world.look(dead(), seconds=SETTLE_SECONDS)
    world.prints(0, "of another process with its number")
    world.look(dead())
    assert world.kept() == {(1, 0): ("ProcessDied", "before\nlate\n")}


def test_a_rank_that_dies_before_anybody_has_seen_it_leaves_its_lines(world):
    world.look()
    world.prints(0, "from the constructor")
    world.look(dead())
    assert world.kept() == {(1, 0): ("ProcessDied", "from the constructor\n")}


def test_a_rank_that_has_printed_nothing_is_reported_all_the_same(world):
    world.look(a_rank())
    world.look(replace(dead(), process=None), nodes={})
    assert world.kept() == {(1, 0): ("NodeLost", "")}


def test_ranks_that_were_dead_before_are_not_reported(world):
    world.look(dead())
    world.look(dead())
    assert world.kept() == {}


def test_a_restarted_executor_leaves_what_was_kept(world):
    world.look(a_rank(0), a_rank(1))
    world.prints(0, "the end")
    world.look(dead(0), a_rank(1))
    world.start()
    world.look(dead(0), a_rank(1), seconds=FOUND_SECONDS + 1)
    assert world.kept() == {(1, 0): ("ProcessDied", "the end\n")}


def test_a_write_that_fails_hurts_nobody(world, monkeypatch, caplog):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    world.look(a_rank())
    world.prints(0, "a user's secret")
    world.look(dead())
    world.look(dead())
    assert [record.message for record in caplog.records] == [
        "cannot keep the last lines of a rank: No space left on device"
    ]


def test_with_the_head_go_all_ranks(world):
    world.look(a_rank(0), a_rank(1))
    world.prints(1, "so far")
    world.keeper.lose_head()
    world.start()  # in another session, where these ranks never were
    world.look(seconds=FOUND_SECONDS + 1)
    assert world.kept() == {(1, 0): ("HeadLost", ""), (1, 1): ("HeadLost", "so far\n")}


@pytest.mark.parametrize("restarts", [False, True])
def test_a_head_that_is_there_after_all_has_lost_no_rank(world, restarts):
    world.look(a_rank(0), a_rank(1))
    world.keeper.lose_head()
    if restarts:
        world.start()
    world.look(a_rank(0), dead(1), seconds=FOUND_SECONDS + 1)
    assert world.kept().keys() == {(1, 1)}


@pytest.mark.parametrize("news", ["the successor lives", "the head is gone"])
def test_what_is_kept_of_a_death_gives_way_only_to_another_death(world, news):
    world.look(a_rank())
    world.prints(0, "of the first")
    world.look(dead())
    world.look(dead(), a_successor(), seconds=SETTLE_SECONDS)
    world.tails.add(process(7), ["of its successor"])
    world.keeper.lose_head()
    world.keeper.lose_head()
    assert world.kept() == {(1, 0): ("HeadLost", "of its successor\n")}
    if news == "the successor lives":
        world.look(dead(), a_successor(), seconds=FOUND_SECONDS + 1)
        assert world.kept() == {(1, 0): ("ProcessDied", "of the first\n")}
    else:
        world.start()
        world.look(seconds=FOUND_SECONDS + 1)
        assert world.kept() == {(1, 0): ("HeadLost", "of its successor\n")}


def test_a_death_while_the_head_is_away_is_kept_when_its_successor_lives(world):
    world.look(a_rank())
    world.prints(0, "of the first")
    world.keeper.lose_head()
    world.look(dead())
    world.look(dead(), a_successor(), seconds=FOUND_SECONDS + 1)
    assert world.kept() == {(1, 0): ("ProcessDied", "of the first\n")}


def test_the_reason_for_a_death_may_be_known_a_moment_later(world):
    world.look(a_rank())
    world.prints(0, "the end")
    world.look(dead())
    world.look(dead(death=Death("OutOfMemory", "its node had no memory left", "")))
    assert world.kept() == {(1, 0): ("OutOfMemory", "the end\n")}


def test_lines_of_a_group_that_is_gone_are_removed_after_a_while(world):
    world.look(a_rank())
    world.look(dead())
    for seconds, planned, kept in (
        (GONE_SECONDS, {"uid-g"}, 1),
        (GONE_SECONDS, set(), 1),
        (GONE_SECONDS - 1, {"uid-h"}, 1),
        (40, set(), 0),
    ):
        world.time += seconds
        world.keeper.forget_but(planned)
        assert len(world.kept()) == kept


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("boom", "boom"),
        ("word " * 200 + "end", "... " + "word " * ((MAX_LAST_WORDS - 8) // 5) + "end"),
        ("x" * 2 * MAX_LAST_WORDS, "x" * MAX_LAST_WORDS),
        ("    a = 1 ^ 2\n        ~~^^~~\nBoom", "a = 1 ^ 2 Boom"),
    ],
    ids=["short", "long", "one-word", "underlined"],
)
def test_last_words_that_are_too_long_begin_with_a_whole_word(printed, said):
    assert last_words(printed.encode()) == said


@pytest.mark.parametrize("first", ["terminate called after throwing an instance of 'c10::AcceleratorError'", ""])
def test_last_words_of_a_crash_are_about_the_crash(first):
    fatal = "Fatal Python error: Aborted\n\nThread 0x1 (most recent call first):\n  <no Python frame>"
    modules = "Extension modules: " + ", ".join(f"module{number}" for number in range(200))
    said = last_words("\n".join(["step 7", *filter(None, [first]), fatal, "", modules]).encode())
    assert said == " ".join([*filter(None, [first]), fatal.replace("\n\n", " ").replace("\n  ", " ")])
