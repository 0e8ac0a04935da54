"""A turn reads everything again if the agent's Lease has news meanwhile."""

import asyncio

import pytest

from tests.unit.operator.make import KEY, observed
from workergroups_operator import observe
from workergroups_operator.heartbeats import Heartbeats
from workergroups_operator.membership import Membership
from workergroups_operator.timings import Timings


def lease(count, session):
    return {"metadata": {}, "spec": {"renewTime": str(count), "holderIdentity": session}}


@pytest.fixture
def readings(monkeypatch):
    """Return how often a turn reads if the Lease changes in this way during each reading."""

    def count(*sessions):
        beats, read = Heartbeats(Timings()), []
        beats.note(KEY, lease(0, "s"))

        async def read_once(*_):
            read.append(None)
            if len(read) <= len(sessions):
                beats.note(KEY, lease(len(read), sessions[len(read) - 1]))
            return observed(pods=())

        monkeypatch.setattr(observe, "_read", read_once)
        asyncio.run(observe.observe(None, Membership({}, {}, {}), beats, KEY))
        return len(read)

    return count


@pytest.mark.parametrize(
    ("sessions", "times"),
    [
        ((), 1),
        (("s",), 1),
        (("t",), 2),
        ((None,), 2),
        (("t", "t"), 2),
        (("t", "u"), 3),
    ],
)
def test_news_of_the_lease_make_a_turn_read_again(readings, sessions, times):
    assert readings(*sessions) == times


def test_a_lease_that_somebody_edits_all_the_time_does_not_stop_the_turn(readings):
    assert readings(*map(str, range(10))) == observe.MAX_READINGS
