"""A wait ends at its deadline, and a long one says what it waits for."""

import pytest

from workergroups import waiting
from workergroups.waiting import poll


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(waiting, "time", clock)
    return clock


@pytest.mark.parametrize(
    ("answered_after", "timeout", "lines"),
    [
        (9, 60, []),
        (30, 60, [10]),
        (None, 60, [10]),
        (None, 140, [10, 70, 130]),
        (None, 5, []),
    ],
)
def test_a_long_wait_says_what_is_missing_after_ten_seconds_and_then_each_minute(
    clock, capsys, answered_after, timeout, lines
):
    def question():
        return answered_after is not None and clock.now >= answered_after

    answer = poll(question, timeout=timeout, describe=lambda seconds: f"after {seconds:g} s, rank 1 is missing")
    assert bool(answer) == (answered_after is not None)
    said = [f"[workergroups] still waiting: after {each} s, rank 1 is missing" for each in lines]
    assert capsys.readouterr().err.splitlines() == said
    assert clock.now <= timeout


def test_a_wait_without_a_description_says_nothing(capsys):
    assert poll(lambda: False, timeout=100) is None
    assert capsys.readouterr().err == ""
