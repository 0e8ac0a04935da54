"""Waiting until pools and groups are ready."""

import itertools

import pytest

from tests.unit.client.fake_cluster import SOON, FakeCluster, condition, pool
from workergroups_client.errors import CannotBeReadyError, DeadlineError, NotSeenError, UnreachableError
from workergroups_client.objects import readiness
from workergroups_client.objects.names import find
from workergroups_client.objects.readiness import wait_until_ready, why
from workergroups_client.objects.status import status_of


def looks(*readies):
    """A cluster whose pool has another status at each look; the last one stays."""
    statuses = itertools.chain(readies, itertools.repeat(readies[-1]))

    class Changing(FakeCluster):
        def get(self, kind, name):
            status, reason, deadline = next(statuses)
            if status == "away":
                raise UnreachableError(reason)
            if not status:
                return pool(name)
            conditions = [condition("Ready", status, reason, message="no node fits")]
            if deadline == PASSED:
                conditions.append(condition("Progressing", "False", "ProgressDeadlineExceeded"))
            return pool(name, status={"conditions": conditions, "observedGeneration": 2, "deadline": deadline})

    return Changing(pool("ppo"))


PASSED = "2026-01-01T00:00:01Z"
UNSEEN, WAITING, LATE = ("", "", None), ("False", "HeadStarting", SOON), ("False", "NoMatchingNode", PASSED)
AWAY = ("away", "no route", None)
READY, DEAD = ("True", "Reserved", None), ("False", "LaunchFailed", None)


@pytest.fixture
def clock(monkeypatch):
    """Time passes only while one waits, a second with each look."""
    now = itertools.count()
    monkeypatch.setattr(readiness.time, "monotonic", lambda: float(next(now)))
    monkeypatch.setattr(readiness, "look_again", lambda seconds, **_: range(seconds))


def wait(*readies, seconds=1000):
    shown = []
    cluster = looks(*readies)
    target = find(FakeCluster(pool("ppo")), "ppo")
    (status,) = wait_until_ready(cluster, [target], lambda statuses: shown.append(statuses[0].is_ready), seconds)
    return status.is_ready, shown


def test_it_ends_when_they_are_ready_and_stay_so(clock):
    assert wait(UNSEEN, WAITING, READY) == (True, [False, False, True])


@pytest.mark.parametrize("seconds", [1, 2])
def test_in_a_time_that_is_too_short_to_be_sure_they_are_ready_if_they_are_in_the_end(clock, seconds):
    assert wait(READY, seconds=seconds) == (True, [True])


def test_that_they_are_ready_is_not_shown_before_it_is_believed(clock):
    assert wait(READY, WAITING, READY)[1] == [False, True]


def test_a_failure_of_before_what_was_applied_is_not_believed(clock):
    assert wait(DEAD, DEAD, DEAD, WAITING, READY)[0]


def test_such_a_failure_is_not_shown_either(clock):
    assert wait(DEAD, DEAD, WAITING, READY)[1] == [False, True]


def test_a_pool_without_devices_says_how_to_find_who_holds_them():
    lacking, waiting = looks(("False", "InsufficientResources", SOON)), looks(WAITING)
    found = [why(status_of(find(each, "ppo"))) for each in (lacking, waiting)]
    assert [each.endswith("; who holds them: workergroups status ppo") for each in found] == [True, False]


def test_what_cannot_be_ready_ends_it(clock):
    with pytest.raises(CannotBeReadyError, match="pool ppo will not become ready: LaunchFailed"):
        wait(WAITING, DEAD)


def test_a_deadline_that_has_passed_ends_nothing(clock):
    assert wait(WAITING, *[LATE] * 500, READY)[0]


def test_after_the_timeout_it_says_what_the_objects_wait_for_and_how_long_they_may(clock):
    with pytest.raises(DeadlineError) as late:
        wait(LATE, seconds=90)
    assert str(late.value) == (
        "not ready within 1m30s: pool ppo: NoMatchingNode: no node fits (ProgressDeadlineExceeded: the operator keeps "
        "trying). Everything stays on the cluster: workergroups status shows its progress"
    )
    with pytest.raises(UnreachableError, match="no route"):
        wait(WAITING, AWAY, seconds=90)


def test_an_api_server_that_is_away_for_a_moment_ends_nothing(clock):
    assert wait(WAITING, AWAY, AWAY, READY)[0]
    with pytest.raises(UnreachableError, match="no route"):
        wait(WAITING, AWAY)


def test_an_operator_that_is_not_there_is_reported(clock):
    with pytest.raises(NotSeenError, match="the operator has not seen what was applied within 60 s"):
        wait(UNSEEN)
