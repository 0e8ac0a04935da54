"""Ranks that are recreated alone: which births follow, and what a report says of them."""

import pytest

from workergroups_api.plan import MAX_BIRTHS
from workergroups_api.report import GroupReport
from workergroups_operator.policy.births import births_after, present_report


@pytest.mark.parametrize(
    ("births", "failed", "number", "expected"),
    [
        ({}, {1}, 1, {1: 1}),
        ({1: 1}, {1}, 2, {1: 2}),
        ({1: 1}, {0}, 2, {0: 2, 1: 1}),
        ({0: 1, 1: 2}, {0, 2}, 3, {0: 3, 1: 2, 2: 3}),
        # No rank would keep its memory, or nobody knows which ranks failed.
        ({}, {0, 1, 2, 3}, 1, None),
        ({}, set(), 1, None),
    ],
)
def test_the_failed_ranks_of_four_get_the_number_of_the_restart(births, failed, number, expected):
    assert births_after(births, failed, 4, number) == expected


def test_a_rank_that_is_alone_is_all_of_the_group():
    assert births_after({}, {0}, 1, 1) is None


def test_the_births_of_the_latest_restarts_are_remembered():
    births = {rank: 1 + rank for rank in range(MAX_BIRTHS)}
    found = births_after(births, {1000, 1001}, 2000, 500)
    assert len(found) == MAX_BIRTHS
    assert births.items() - found.items() == {(0, 1), (1, 2)}
    assert births_after({}, range(MAX_BIRTHS), 2000, 1) == dict.fromkeys(range(MAX_BIRTHS), 1)
    assert births_after({}, range(MAX_BIRTHS + 1), 2000, 1) is None


FAILED = {"rank": 1, "reason": "ProcessDied", "message": "killed"}
PAUSE = {"rank": 1, "where": "train.py:12", "since": "2026-01-01T00:00:00Z"}
HANG = {"method": "step", "since": "2026-01-01T00:00:00Z", "ranks": "1-2", "message": "hangs"}


def report(**more):
    ready = {"incarnation": 1, "state": "Launched", "created": 4, "readyCount": 4, "ready": "0-3"}
    return GroupReport.model_validate(ready | more)


DEAD = report(readyCount=3, ready="0,2-3", failed="1", failures=[FAILED])


@pytest.mark.parametrize("births", [{}, {1: 1}, {1: 1, 3: 1}])
def test_a_report_that_knows_all_births_counts_as_it_is(births):
    known = DEAD.model_copy(update={"birth": 1})
    assert present_report(known, births) == known


def test_a_late_report_says_nothing_of_a_rank_that_was_recreated_since():
    found = present_report(DEAD, {1: 1})
    assert (found.state, found.created, found.ready_count, found.ready) == ("Launching", 3, 3, "0,2-3")
    assert (found.failed, found.failures) == ("", ())


def test_a_late_report_still_counts_for_the_others():
    both = report(readyCount=2, ready="2-3", failed="0-1", failures=[{**FAILED, "rank": 0}, FAILED])
    found = present_report(both, {1: 1})
    assert (found.created, found.ready, found.failed) == (3, "2-3", "0")
    assert [each.rank for each in found.failures] == [0]


def test_a_rank_that_is_ended_since_it_hangs_is_not_ready():
    found = present_report(report(hang=HANG, paused="1,3", pauses=[PAUSE]), {1: 1, 2: 1})
    assert (found.created, found.ready, found.paused, found.pauses, found.hang) == (2, "0,3", "3", (), None)


@pytest.mark.parametrize(
    ("births", "birth", "counts"),
    [
        ({}, None, True),
        ({1: 1}, None, True),
        ({1: 1, 2: 1}, None, False),
        ({1: 1, 2: 1}, 1, True),
        ({1: 1, 2: 2}, 1, True),
        ({1: 3, 2: 2}, 1, False),
        ({3: 4}, None, True),
    ],
)
def test_a_hang_counts_until_all_of_its_ranks_are_recreated(births, birth, counts):
    """The agent may see the new plan before it looks at calls again."""
    found = present_report(report(birth=9, hang={**HANG, "birth": birth}), births)
    assert (found.hang is not None) == counts
