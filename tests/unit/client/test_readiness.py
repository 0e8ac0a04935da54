"""Waiting until pools and groups are ready."""

import itertools

import pytest

from tests.unit.client.fake_cluster import SOON, FakeCluster, condition, pool
from workergroups_client import readiness
from workergroups_client.errors import CannotBeReadyError, DeadlineError, UnreachableError
from workergroups_client.names import find
from workergroups_client.readiness import wait_until_ready


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
            ready = condition("Ready", status, reason, message="")
            return pool(name, status={"conditions": [ready], "observedGeneration": 2, "deadline": deadline})

    return Changing(pool("ppo"))


UNSEEN, WAITING = ("", "", None), ("False", "HeadStarting", SOON)
AWAY = ("away", "no route", None)
READY, DEAD = ("True", "Reserved", None), ("False", "LaunchFailed", None)


@pytest.fixture
def clock(monkeypatch):
    """Time passes only while one waits."""
    now = itertools.count()
    monkeypatch.setattr(readiness.time, "monotonic", lambda: float(next(now)))
    monkeypatch.setattr(readiness, "look_again", lambda *_, **__: range(1000))


def wait(*readies):
    shown = []
    cluster = looks(*readies)
    target = find(FakeCluster(pool("ppo")), "ppo")
    (status,) = wait_until_ready(cluster, [target], lambda statuses: shown.append(statuses[0].is_ready))
    return status.is_ready, shown


def test_it_ends_when_they_are_ready_and_stay_so(clock):
    assert wait(UNSEEN, WAITING, READY) == (True, [False, False, True])


def test_that_they_are_ready_is_not_shown_before_it_is_believed(clock):
    assert wait(READY, WAITING, READY)[1] == [False, True]


def test_a_failure_of_before_what_was_applied_is_not_believed(clock):
    assert wait(DEAD, DEAD, DEAD, WAITING, READY)[0]


def test_what_cannot_be_ready_ends_it(clock):
    with pytest.raises(CannotBeReadyError, match="pool ppo will not become ready: LaunchFailed"):
        wait(WAITING, DEAD)


def test_an_api_server_that_is_away_for_a_moment_ends_nothing(clock):
    assert wait(WAITING, AWAY, AWAY, READY)[0]
    with pytest.raises(UnreachableError, match="no route"):
        wait(WAITING, AWAY)


def test_an_operator_that_is_not_there_is_reported(clock):
    with pytest.raises(DeadlineError, match="the operator has not seen what was applied within 60 s"):
        wait(UNSEEN)
