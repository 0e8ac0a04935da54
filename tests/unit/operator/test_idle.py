"""Pools that nobody uses: since when, when they are suspended or deleted, and what wakes them."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.operator import make
from tests.unit.operator.make import HEAD, NOW, SESSION, decided, group, metadata, pool, reservation, statuses, wanted
from workergroups_api.conditions import Explanation, find
from workergroups_api.manifest import WORKER_GROUP
from workergroups_api.names import WAKE_AT_ANNOTATION
from workergroups_api.pool_status import PoolIdle
from workergroups_api.resource_pool import ResourcePool
from workergroups_operator.apply import changes
from workergroups_operator.failures import Failures
from workergroups_operator.observed import AgentHeartbeat, UnreadableObject
from workergroups_operator.policy.idle import may_be_deleted

CONDITIONS = [{"type": "Ready", "status": "True", "reason": "x", "lastTransitionTime": NOW.isoformat()}]
HOUR = timedelta(hours=1)
CONNECTED = AgentHeartbeat(session=SESSION, known=(HEAD, SESSION))


def observed(**parts):
    """A cluster whose agent has been connected since before."""
    return make.observed(**({"agent": CONNECTED} | parts))


def idle_pool(idle=None, drivers=0, wake_at=None, is_ready=True, action="Suspend", ended=None, **spec):
    """A pool that is ready, with an hour until it is suspended or deleted."""
    report = reservation("p-0", "p-1")["reservation"] | ({} if drivers is None else {"drivers": drivers})
    report |= {} if ended is None else {"lastDriverEnd": ended.isoformat()}
    body = pool(idle={"afterSeconds": 3600, "action": action}, **spec).model_dump(by_alias=True, mode="json")
    more = {"annotations": {WAKE_AT_ANNOTATION: wake_at}} if wake_at else {}
    status = {"reservation": report, "conditions": CONDITIONS if is_ready else []} | ({"idle": idle} if idle else {})
    return ResourcePool.model_validate(body | {"metadata": metadata("actors", **more), "status": status})


def record_of(pool_, at=NOW, **parts):
    return decided(observed(pools=(pool_,), at=at, **parts)).idle.get("actors")


ODD = UnreadableObject(WORKER_GROUP, {"metadata": {"name": "odd", "uid": "uid-odd"}}, Explanation("X", "x"))
SINCE = {"since": NOW.isoformat()}
SUSPENDED = SINCE | {"suspended": True}


@pytest.mark.parametrize(
    ("pool_", "parts", "record"),
    [
        (idle_pool(), {}, PoolIdle(since=NOW)),
        (idle_pool(SINCE), {"at": NOW + HOUR - timedelta(seconds=1)}, PoolIdle(since=NOW)),
        (idle_pool(SINCE), {"at": NOW + HOUR}, PoolIdle(since=NOW, suspended=True)),
        # A driver came and went since, uncounted; or before; or its clock is ahead.
        (idle_pool(SINCE, ended=NOW + HOUR / 2), {"at": NOW + HOUR}, PoolIdle(since=NOW + HOUR / 2)),
        (idle_pool(SINCE, ended=NOW - HOUR), {"at": NOW + HOUR}, PoolIdle(since=NOW, suspended=True)),
        (idle_pool(SINCE, ended=NOW + 9 * HOUR), {"at": NOW + HOUR / 2}, PoolIdle(since=NOW + HOUR / 2)),
        # Somebody uses it, or nobody knows.
        (idle_pool(SINCE, drivers=1), {"at": NOW + HOUR}, PoolIdle()),
        (idle_pool(SINCE, drivers=None), {"at": NOW + HOUR}, PoolIdle()),
        (idle_pool(SINCE, is_ready=False), {"at": NOW + HOUR}, PoolIdle()),
        (idle_pool(SINCE), {"groups": (group(),)}, PoolIdle()),
        (idle_pool(SINCE), {"unreadable": (ODD,)}, PoolIdle()),
        # Groups that do not want it.
        (idle_pool(SINCE), {"groups": (group(suspend=True),)}, PoolIdle(since=NOW)),
        (idle_pool(SINCE), {"groups": (group(pools=["other"]),)}, PoolIdle(since=NOW)),
        # It stays suspended until somebody wants it.
        (idle_pool(SUSPENDED, is_ready=False, drivers=None), {}, PoolIdle(since=NOW, suspended=True)),
        (idle_pool(SUSPENDED, is_ready=False), {"groups": (group(),)}, PoolIdle()),
        (idle_pool(SUSPENDED, is_ready=False, wake_at="now"), {}, PoolIdle(wake_at="now")),
        (
            idle_pool(SUSPENDED | {"wakeAt": "now"}, wake_at="now"),
            {},
            PoolIdle(since=NOW, suspended=True, wake_at="now"),
        ),
        # A wake-up begins the hour again; one from before is none.
        (idle_pool(SINCE, wake_at="now"), {"at": NOW + HOUR}, PoolIdle(wake_at="now")),
        (idle_pool(wake_at="long ago"), {}, PoolIdle(since=NOW, wake_at="long ago")),
        (idle_pool(SINCE, wake_at="x" * 999), {}, PoolIdle(wake_at="x" * 64)),
        (idle_pool({"wakeAt": "a b"}, wake_at=" a\n b"), {}, PoolIdle(since=NOW, wake_at="a b")),
        (idle_pool(SUSPENDED, suspend=True), {}, None),
    ],
)
def test_how_long_nobody_has_used_a_pool(pool_, parts, record):
    assert record_of(pool_, **parts) == record


def test_a_pool_without_the_field_keeps_its_devices():
    assert record_of(pool(status={"idle": SUSPENDED})) is None
    assert decided(observed(pools=(pool(status={"idle": SUSPENDED}),))).suspended_pools == {}


def test_an_idle_pool_says_when_it_will_be_suspended_and_the_operator_looks_then():
    taken = statuses(observed(pools=(idle_pool(SINCE),)))
    said = find(taken.updates[0].after.conditions, "Idle")
    assert (said.status, said.reason) == ("True", "Unused")
    assert "suspended at 2026-01-01T13:00:00Z" in said.message
    assert taken.requeue_after == 3600.0
    said = find(statuses(observed(pools=(idle_pool(drivers=2),))).updates[0].after.conditions, "Idle")
    assert (said.status, said.reason, said.message) == ("False", "InUse", "2 drivers are connected to its Ray cluster")


def test_a_pool_that_is_suspended_for_being_idle_has_nothing_and_no_deadline():
    seen = observed(pools=(idle_pool(SUSPENDED),), pods=())
    assert not [each for each in wanted(seen) if each["kind"] == "RayCluster"]
    found = {each.type: each for each in statuses(seen).updates[0].after.conditions}
    assert (found["Ready"].reason, found["Suspended"].status, found["Suspended"].reason) == ("Idle", "True", "Idle")
    assert (found["Progressing"].status, found["Idle"].status) == ("False", "True")
    assert "workergroups job submit actors" in found["Ready"].message
    assert statuses(seen).updates[0].after.deadline is None


def test_a_group_that_wakes_a_pool_gets_its_ranks():
    asleep = observed(pools=(idle_pool(SUSPENDED),), groups=(group(suspend=True),), pods=())
    assert decided(asleep).is_off
    awake = replace(asleep, groups=(group(),))
    decisions = decided(awake)
    assert (decisions.is_off, decisions.groups.suspended) == (False, {})
    assert [each for each in wanted(awake) if each["kind"] == "RayCluster"]


@pytest.mark.parametrize(
    "heartbeat",
    [
        AgentHeartbeat(),
        replace(CONNECTED, away_seconds=1.0),
        replace(CONNECTED, is_silent=True),
        replace(CONNECTED, session="another"),
        replace(CONNECTED, known=None),
        replace(CONNECTED, known=("another head", SESSION)),
        replace(CONNECTED, doubts={"uid-actors": "the status cannot be written"}),
        replace(CONNECTED, doubts={"*": "nothing can be written"}),
    ],
)
def test_while_nobody_vouches_for_the_report_the_pool_keeps_its_devices_and_its_time(heartbeat):
    late = NOW + HOUR
    assert record_of(idle_pool(SINCE), late, agent=heartbeat) == PoolIdle(since=NOW)
    waits = statuses(observed(pools=(idle_pool(SINCE),), at=late, agent=heartbeat), now=late).requeue_after
    assert waits > 0, "the Lease tells when the agent is back"


ASLEEP = idle_pool(SUSPENDED, is_ready=False, action="Delete")


def asleep(pool_=ASLEEP, named=(), **parts):
    return observed(pools=(pool_,), pods=(), named_pools=None if named is None else frozenset(named), **parts)


@pytest.mark.parametrize(
    ("seen", "is_deleted"),
    [
        (asleep(), True),
        (asleep(named=["other"]), True),
        # A group names it, according to the index or to the list, or nobody has looked.
        (asleep(groups=(group(suspend=True),)), False),
        (asleep(groups=(group(pools=["other"]),)), True),
        (asleep(named=["actors"]), False),
        (asleep(named=None), False),
        (asleep(unreadable=(ODD,)), False),
        # Somebody wants it.
        (asleep(groups=(group(),)), False),
        (asleep(idle_pool(SUSPENDED, is_ready=False, wake_at="now", action="Delete")), False),
        # Its status does not say yet that it is suspended.
        (asleep(idle_pool(SINCE, action="Delete"), at=NOW + HOUR), False),
        (asleep(idle_pool(SINCE, action="Delete")), False),
        # Nobody has asked for it, or its user has suspended it.
        (asleep(idle_pool(SUSPENDED, is_ready=False)), False),
        (asleep(idle_pool(SUSPENDED, is_ready=False, action="Delete", suspend=True)), False),
        (asleep(pool(status={"idle": SUSPENDED})), False),
    ],
)
def test_which_pools_are_deleted(seen, is_deleted):
    decisions = decided(seen)
    assert list(decisions.deleted_pools) == ["actors"] * is_deleted
    assert [each.name for each, _ in changes(seen, decisions, []).unused] == ["actors"] * is_deleted
    if is_deleted:
        why = decisions.deleted_pools["actors"]
        assert (why.reason, "since 2026-01-01T12:00:00Z" in why.message) == ("Deleted", True)


def test_groups_are_listed_only_for_a_pool_that_may_be_deleted():
    assert may_be_deleted(ASLEEP, asleep(named=None))
    assert not may_be_deleted(ASLEEP, asleep(named=None, groups=(group(suspend=True),)))
    assert not may_be_deleted(idle_pool(SINCE, action="Delete"), observed())


REFUSED = Failures({"ResourcePool": Explanation("ApplyFailed", "ResourcePool actors cannot be deleted")})


@pytest.mark.parametrize(
    ("seen", "failures", "what_follows"),
    [
        (observed(pools=(idle_pool(SINCE, action="Delete"),)), None, "; it will be deleted at 2026-01-01T13:00:00Z"),
        (
            observed(pools=(idle_pool(SINCE, action="Delete"),), groups=(group(suspend=True),)),
            None,
            "; it will be suspended at 2026-01-01T13:00:00Z, and will be deleted once no group names it, "
            "as trainer does",
        ),
        (asleep(), None, "; it is suspended, and will be deleted unless a group names it"),
        (
            asleep(groups=(group(suspend=True),)),
            None,
            "; it is suspended, and will be deleted once no group names it, as trainer does",
        ),
        (asleep(), REFUSED, "; it is suspended; ResourcePool actors cannot be deleted"),
    ],
)
def test_an_idle_pool_says_whether_it_will_be_deleted(seen, failures, what_follows):
    said = find(statuses(seen, failures).updates[0].after.conditions, "Idle")
    assert (said.status, said.reason) == ("True", "Unused")
    assert said.message.endswith(what_follows)
