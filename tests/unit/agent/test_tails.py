"""The end of what processes print is kept in bounded memory, and begins with a whole line."""

import pytest

from workergroups_agent.observer.printed_lines import GAP, Tails

RANK, OTHER = ("10.0.0.1", 7), ("10.0.0.2", 7)


@pytest.fixture
def tails():
    tails = Tails(each=100, ranks=200, others=1000)
    tails.claim({RANK})
    return tails


def test_the_last_lines_of_a_process_are_kept(tails):
    tails.add(RANK, [f"line {number}" for number in range(1000)])
    tails.add(RANK, ["the end"])
    kept = tails.text(RANK).decode().splitlines()
    assert kept == [f"line {number}" for number in range(1000 - len(kept) + 1, 1000)] + ["the end"]
    assert 80 < len(tails.text(RANK)) <= 100


def test_of_one_line_that_is_too_long_the_end_is_kept(tails):
    tails.add(RANK, ["x" * 10_000_000 + "y"])
    assert tails.text(RANK) == b"x" * 98 + b"y\n"


def test_odd_text_comes_through(tails):
    odd = "\0 \x1b[31mred\x1b[0m 50%\r100% \U0001f4a5 \ufffd"
    tails.add(RANK, [odd, "half a pair: \ud800"])
    assert tails.text(RANK).decode() == f"{odd}\nhalf a pair: ?\n"


def test_what_came_before_the_process_was_known_as_a_rank_is_kept(tails):
    tails.add(OTHER, ["early"])
    assert tails.text(OTHER) == b""
    tails.claim({RANK, OTHER})
    tails.add(OTHER, ["late"])
    assert tails.text(OTHER) == b"early\nlate\n"


def test_what_is_no_rank_any_more_is_forgotten(tails):
    tails.add(RANK, ["of the one before"])
    tails.claim(set())
    tails.claim({RANK})
    assert tails.text(RANK) == b""


def test_processes_that_are_no_ranks_take_their_part_and_no_more():
    tails = Tails(each=100, ranks=200, others=1000)
    others = [("10.0.0.2", number) for number in range(10)]
    for other in others:
        tails.add(other, ["x" * 50])
    tails.claim(others)
    assert [number for number, other in enumerate(others) if tails.text(other)] == [7, 8, 9]


def test_many_ranks_share_what_there_is():
    tails = Tails(each=100, ranks=200, others=1000)
    ranks = [("10.0.0.1", number) for number in range(10)]
    for claimed in (ranks[:2], ranks):
        tails.claim(claimed)
        for rank in claimed:
            tails.add(rank, ["x"] * 200)
    assert sum(len(tails.text(rank)) for rank in ranks) <= 200
    assert all(tails.text(rank) for rank in ranks)


def test_a_gap_is_reported_where_it_is_and_once(tails):
    tails.add(RANK, ["before"])
    tails.mark_gap()
    tails.mark_gap()
    tails.add(RANK, ["after"])
    tails.add(RANK, ["later"])
    assert tails.text(RANK).decode().splitlines()[-3:] == [GAP, "after", "later"]


def test_a_process_that_begins_after_a_gap_has_none(tails):
    tails.mark_gap()
    tails.add(OTHER, ["first"])
    tails.claim({OTHER})
    assert tails.text(OTHER) == b"first\n"
