"""Which drivers a pool has, and that it says when it has lost them with the head while everything else came back."""

from datetime import timedelta

import pytest

from tests.unit.operator.make import CONNECTED, HEAD, NOW, SESSION, observed, pod, pool, ready_pool, status_of, workers
from workergroups_api.pool_status import LostDrivers, PoolDrivers
from workergroups_api.report import PoolReport
from workergroups_operator.observed import AgentHeartbeat
from workergroups_operator.policy.agent_liveness import AgentLiveness, AgentState
from workergroups_operator.policy.drivers import drivers, is_over
from workergroups_operator.publish import news_event

EARLIER = NOW - timedelta(minutes=5)
LOST = LostDrivers(count=2, jobs=("ppo-1", "ppo-2"), time=NOW)
LOST_EARLIER = LostDrivers(count=1, jobs=("ppo-0",), time=EARLIER)


def report(running, session="s1", jobs=(), ended=None, head=None):
    return PoolReport(session=session, head=head, drivers=running, driver_jobs=jobs, last_driver_end=ended)


def known(running, session="s1", jobs=(), lost=None, head=None):
    return PoolDrivers(session=session, head=head, running=running, jobs=jobs, lost=lost)


TWO = ("ppo-1", "ppo-2")


@pytest.mark.parametrize(
    ("before", "reported", "over", "expected"),
    [
        # Nobody has counted: an agent that has not come yet, or an older one.
        (None, None, False, None),
        (None, PoolReport(session="s1"), False, None),
        (known(0), PoolReport(session="s1"), False, known(0)),
        # While the session lasts, it is what the agent reports.
        (None, report(0), False, known(0)),
        (known(0), report(2, jobs=TWO), False, known(2, jobs=TWO)),
        (known(2, jobs=TWO), report(0), False, known(0)),
        # The head is gone, and the report is still of its session.
        (known(2, jobs=TWO), report(2, jobs=TWO), True, known(0, lost=LOST)),
        (known(0), report(0), True, known(0)),
        (known(2, jobs=TWO), report(0), True, known(0)),
        # The operator was away when the driver came, and when the head was lost.
        (known(0), report(2, jobs=TWO), True, known(0, lost=LOST)),
        (known(2, jobs=TWO), None, True, known(0, lost=LOST)),
        # It counts once.
        (known(0, lost=LOST_EARLIER), report(2, jobs=TWO), True, known(0, lost=LOST_EARLIER)),
        # The next session has come, and its report with it.
        (known(2, jobs=TWO), report(0, "s2"), False, known(0, "s2", lost=LOST)),
        (known(0, lost=LOST_EARLIER), report(0, "s2"), False, known(0, "s2", lost=LOST_EARLIER)),
        (known(0, "s2", lost=LOST_EARLIER), report(0, "s2"), False, known(0, "s2", lost=LOST_EARLIER)),
        # A second head is lost, without drivers.
        (known(0, "s2", lost=LOST_EARLIER), report(0, "s2"), True, known(0, "s2", lost=LOST_EARLIER)),
        # A driver has come.
        (known(0, "s2", lost=LOST_EARLIER), report(1, "s2"), False, known(1, "s2")),
        (known(2, jobs=TWO), report(1, "s2"), False, known(1, "s2")),
        # A driver has come and gone, and was never counted.
        (known(0, "s2", lost=LOST_EARLIER), report(0, "s2", ended=NOW), False, known(0, "s2")),
        (known(2, jobs=TWO), report(0, "s2", ended=NOW), False, known(0, "s2")),
        (known(0, lost=LOST_EARLIER), report(0, "s2", ended=NOW), True, known(0, "s2")),
        # Others of the lost session had ended before.
        (known(2, jobs=TWO), report(2, jobs=TWO, ended=EARLIER), True, known(0, lost=LOST)),
        (known(0, lost=LOST_EARLIER), report(2, jobs=TWO, ended=EARLIER), True, known(0, lost=LOST_EARLIER)),
        # The head has come back with its session, and without its drivers; then one comes and goes.
        (known(0, lost=LOST_EARLIER), report(0), False, known(0, lost=LOST_EARLIER)),
        (known(0, lost=LOST_EARLIER), report(0, ended=EARLIER), False, known(0, lost=LOST_EARLIER)),
        (known(0, lost=LOST_EARLIER), report(0, ended=NOW), False, known(0)),
        (known(0, lost=LOST_EARLIER), report(1), False, known(1)),
        # It was away for so short a time that nobody saw it.
        (known(2, jobs=TWO, head="h1"), report(0, head="h2"), False, known(0, head="h2", lost=LOST)),
        (known(2, jobs=TWO, head="h1"), report(1, head="h2"), False, known(1, head="h2")),
        (known(2, jobs=TWO, head="h1"), report(0, head="h1"), False, known(0, head="h1")),
        (known(2, jobs=TWO), report(0, head="h1"), False, known(0, head="h1")),
        (known(0, head="h1"), report(2, jobs=TWO, head="h1"), True, known(0, head="h1", lost=LOST)),
    ],
)
def test_drivers_are_lost_with_their_session_until_another_one_comes(before, reported, over, expected):
    assert drivers(before, reported, is_over=over, now=NOW) == expected


@pytest.mark.parametrize(
    ("session", "agent", "heartbeat", "head", "expected"),
    [
        ("s1", AgentLiveness(AgentState.CONNECTED, HEAD, "s1"), CONNECTED, True, False),
        ("s1", AgentLiveness(AgentState.LOST, HEAD, "s1"), CONNECTED, True, False),
        ("s1", AgentLiveness(AgentState.CONNECTED, HEAD, "s2"), CONNECTED, True, True),
        # The agent is not connected to the present head yet.
        ("s1", AgentLiveness(AgentState.STARTING), AgentHeartbeat(known=(HEAD, "s1")), True, False),
        ("s1", AgentLiveness(AgentState.STARTING), AgentHeartbeat(known=("uid/life-0", "s1")), True, True),
        ("s1", AgentLiveness(AgentState.STARTING), AgentHeartbeat(known=(HEAD, "s1")), False, True),
        # It reports the next session, which the operator does not believe yet.
        ("s2", AgentLiveness(AgentState.STARTING), AgentHeartbeat(known=("uid/life-0", "s1")), True, False),
        # Nobody knows: the Lease was deleted.
        ("s1", AgentLiveness(AgentState.STARTING), AgentHeartbeat(), False, False),
        (None, AgentLiveness(AgentState.CONNECTED, HEAD, "s1"), CONNECTED, True, False),
    ],
)
def test_a_session_is_over_when_its_head_is_gone(session, agent, heartbeat, head, expected):
    pods = (pod("head"),) if head else ()
    assert is_over(session, agent, observed(agent=heartbeat, pods=pods)) == expected


def lost_pool(**more):
    return ready_pool(drivers=known(2, "session-0", TWO).to_json(), **more)


def test_a_pool_whose_head_came_back_without_its_drivers_is_ready_and_says_so():
    before = lost_pool()
    counted = before.status.reservation.model_copy(update={"drivers": 0})
    seen = observed(
        pools=(before.model_copy(update={"status": before.status.model_copy(update={"reservation": counted})}),)
    )
    update = status_of(seen)
    assert (update.ready.status, update.ready.reason) == ("True", "DriversLost")
    assert update.ready.message == (
        "Ray's head was lost at 2026-01-01T12:00:00Z with 2 drivers (ppo-1, ppo-2), and none has connected since: "
        "start it again, such as with workergroups job submit actors -n team"
    )
    assert update.after.drivers == known(0, SESSION, lost=LOST)
    told = news_event(update, *update.news, NOW)
    assert (told["type"], told["reason"], told["note"]) == ("Warning", "DriversLost", update.ready.message)


def test_the_event_comes_once_and_while_the_head_is_missing():
    before = ready_pool(drivers=known(2, jobs=TWO).to_json())
    heartbeat = AgentHeartbeat(known=(HEAD, "s1"))
    first = status_of(observed(pools=(before,), pods=workers("p-0", "p-1"), agent=heartbeat))
    assert (first.ready.status, first.ready.reason, first.news[0].reason) == ("False", "HeadStarting", "DriversLost")
    after = pool(status=first.after.to_json())
    later = NOW + timedelta(seconds=9)
    again = status_of(observed(pools=(after,), pods=workers("p-0", "p-1"), agent=heartbeat), now=later)
    assert (again.news, again.after.drivers) == ((), first.after.drivers)


def test_a_pool_that_lost_nothing_says_nothing():
    update = status_of(observed(pools=(ready_pool(),)))
    assert (update.after.drivers, update.news, update.ready.reason) == (None, (), "Reserved")
