"""What a process remembers of the groups that it has attached to."""

import pytest

from workergroups.attaching import groups as attaching
from workergroups.naming import RankName


@pytest.fixture
def attached(monkeypatch):
    found = {}
    monkeypatch.setattr(attaching, "_attached", found)
    monkeypatch.setattr(attaching, "_MAX_ATTACHED", 3)
    return found


def remember(incarnation, uid="uid-g"):
    attaching._remember(RankName("g", uid, incarnation, 0, 1))


def test_a_driver_that_attaches_for_months_remembers_the_latest_incarnations(attached):
    for incarnation in (1, 2, 3, 1, 4):
        remember(incarnation)
    assert list(attached) == [("g", 3), ("g", 1), ("g", 4)]


def test_a_recreated_group_takes_its_number_over(attached):
    remember(1)
    remember(1, uid="uid-of-another")
    assert attached == {("g", 1): "uid-of-another"}
