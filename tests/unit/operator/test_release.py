"""Pools that do not get all their nodes in time, and give back those that they have."""

import itertools
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from tests.unit.operator.make import (
    CONNECTED,
    HEAD,
    NODE_GROUP,
    NOW,
    SESSION,
    child,
    decided,
    group,
    observed,
    pod,
    pool,
    statuses,
    wanted,
    workers,
)
from workergroups_api.conditions import find
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.retries import Retries
from workergroups_operator.observed import AgentHeartbeat
from workergroups_operator.policy.release import PAUSES

PASSED, LATER = NOW - timedelta(seconds=1), NOW + timedelta(seconds=1)
HALF = (pod("head"), *workers("p-0"), pod("worker", "p-1", phase="Pending"))


def status(deadline=PASSED, **more):
    return {"observedGeneration": 1, "deadline": deadline.isoformat()} | more


def release(failures, next_):
    return {"release": {"failures": failures, "next": next_.isoformat()}}


READY = {"conditions": [{"type": "Ready", "status": "True", "reason": "x", "lastTransitionTime": NOW.isoformat()}]}


def late(*, on_deadline="Release", **more):
    return pool(status=status(**more), onDeadline=on_deadline)


def record_of(pool_, **parts):
    return decided(observed(**({"pools": (pool_,), "pods": HALF} | parts))).releases.get("actors")


QUEUED = child("RayCluster", "actors", spec={"suspend": True})
RAN = {"incarnation": 2, "session": SESSION}


def ranks(**report):
    return {**RAN, "ranks": {"session": SESSION, "incarnation": 2, **report}}


# Its container starts again.
HEAD_AWAY = {
    "pods": (pod("head", containerStatuses=[]), *workers("p-0")),
    "agent": AgentHeartbeat(SESSION, (HEAD, SESSION)),
    "children": child("RayCluster", "actors", spec={}),
}
RESERVED = {"reservation": {"session": SESSION}}


@pytest.mark.parametrize(
    ("pool_", "parts", "failures"),
    [
        (late(), {}, 1),
        (late(), {"pods": ()}, 1),
        (late(on_deadline="Wait"), {}, None),
        (late(deadline=LATER), {}, None),
        # The deadline is that of an earlier spec, or of an earlier try.
        (late(observedGeneration=0), {}, None),
        (late(**release(3, NOW)), {}, 3),
        (late(**release(3, NOW - timedelta(seconds=9))), {}, 4),
        (late(**release(3, LATER)), {}, 3),
        # All nodes are there, and only Ray is late.
        (late(), {"pods": (pod("head"), *workers("p-0", "p-1"))}, None),
        # It holds nothing, and would lose its place in the queue.
        (late(), {"pods": (), "children": QUEUED}, None),
        (late(**READY, **release(3, PASSED)), {}, None),
        # Ranks may run.
        (late(), {"groups": (group(status=RAN),)}, None),
        (late(), {"groups": (group(status=ranks(created=4)),)}, None),
        (late(), {"groups": (group(status=ranks(created=4)),), "agent": AgentHeartbeat()}, None),
        (late(**RESERVED), {"groups": (group(status=RAN),), **HEAD_AWAY}, None),
        # None do: of this head, of any head, or of a group elsewhere.
        (late(), {"groups": (group(status=ranks()),)}, 1),
        (late(), {"groups": (group(),)}, 1),
        (late(), {"groups": (group(status=RAN | {"session": "of an earlier head"}),)}, 1),
        (late(), {"groups": (group(status=RAN),), "pods": ()}, 1),
        (late(), {"groups": (group(pools=["elsewhere"], status=RAN),)}, 1),
    ],
)
def test_a_late_pool_without_ranks_gives_back_its_nodes(pool_, parts, failures):
    record = record_of(pool_, **parts)
    assert (record and record.failures) == failures


def test_a_suspended_pool_forgets_its_tries():
    suspended = pool(status=status(**release(3, LATER)), onDeadline="Release", suspend=True)
    assert record_of(suspended) is None
    assert decided(observed(pools=(suspended,))).suspended_pools["actors"].reason == "Suspended"


def test_pauses_grow_to_a_limit_and_differ_between_pools():
    def pause(uid, failures):
        known = late(**release(failures - 1, NOW - timedelta(seconds=9))) if failures > 1 else late()
        other = known.model_copy(update={"metadata": known.metadata | {"uid": uid}})
        seen = observed(pools=(other,), pods=())
        return (decided(seen).releases["actors"].next - NOW).total_seconds()

    for failures, least in ((1, 30), (2, 60), (3, 120), (20, PAUSES.last)):
        pauses = [pause(f"uid-{number}", failures) for number in range(20)]
        assert all(least - 1 <= each <= 2 * least for each in pauses)
        assert len(set(pauses)) > 10
    assert pause("uid-a", 1) == pause("uid-a", 1)


def test_what_a_released_pool_has_and_says():
    live = child("RayCluster", "actors", spec={"workerGroupSpecs": [{"groupName": NODE_GROUP, "replicas": 2}]})
    seen = observed(pools=(late(),), groups=(group(),), pods=HALF, children=live)
    assert decided(seen).is_off
    assert not [each for each in wanted(seen) if each["kind"] == "RayCluster"]
    updates = statuses(seen).updates
    found = {each.type: each for each in updates[0].after.conditions}
    assert (found["Ready"].status, found["Ready"].reason) == ("False", "Released")
    assert "trying again at 12:00:" in found["Ready"].message
    assert found["Progressing"].reason == "ProgressDeadlineExceeded"
    assert found["Suspended"].reason == "Suspending"
    gone = replace(seen, pods=(), children={})
    suspended = find(statuses(gone).updates[0].after.conditions, "Suspended")
    assert (suspended.status, suspended.reason) == ("True", "Released")
    # Its groups still wait for it, and have their own deadline.
    of_group = {each.type: each for each in updates[1].after.conditions}
    assert (of_group["Ready"].reason, of_group["Progressing"].status) == ("PoolNotReady", "True")


def turn(seen):
    """Return the pool as the next reconcile finds it, and after how many seconds that is."""
    taken = statuses(seen, now=seen.at)
    body = seen.pools[0].model_dump(by_alias=True, mode="json") | {"status": taken.updates[0].after.to_json()}
    return ResourcePool.model_validate(body), taken.requeue_after


def test_a_pool_that_never_gets_its_nodes_is_released_after_each_deadline():
    """Reconciles of a pool that another one blocks; an operator that restarts knows no more than these reconciles."""
    seen = observed(pools=(pool(onDeadline="Release", progressDeadlineSeconds=60),), pods=())
    held: list[tuple[datetime, bool]] = []
    for _ in range(9):
        held.append((seen.at, not decided(seen).suspended_pools))
        next_pool, seconds = turn(seen)
        seen = replace(seen, pools=(next_pool,), at=seen.at + timedelta(seconds=min(seconds, 3600)))
    spans = [(later - since).total_seconds() for (since, _), (later, _) in itertools.pairwise(held)]
    assert [has_nodes for _, has_nodes in held] == [True, False, True, False, True, False, True, False, True]
    assert spans[::2] == [60.0] * 4
    assert 29 <= spans[1] <= 60
    assert 59 <= spans[3] <= 120
    assert next_pool.status.release.failures == 4


def test_a_try_after_the_spec_has_changed_has_the_whole_time():
    """The change gives the pool, which has no nodes, another deadline."""
    begins = NOW + timedelta(seconds=590)
    changed = pool(
        onDeadline="Release",
        progressDeadlineSeconds=600,
        status=status(**release(5, begins)) | {"observedGeneration": 0},
    )
    seen = observed(pools=(changed,), pods=())
    released, _ = turn(seen)
    assert released.status.deadline == NOW + timedelta(seconds=600)
    trying, _ = turn(replace(seen, pools=(released,), at=begins))
    assert trying.status.deadline == begins + timedelta(seconds=600)
    again, _ = turn(replace(seen, pools=(trying,), at=begins + timedelta(seconds=599)))
    assert (again.status.deadline, again.status.release.failures) == (trying.status.deadline, 5)


def test_a_pool_that_becomes_ready_starts_over():
    ready = late(**READY, **release(3, PASSED))
    assert turn(observed(pools=(ready,), pods=HALF, agent=CONNECTED))[0].status.release is None


def test_a_deadline_that_passes_during_a_turn_is_not_missed():
    seen = observed(pools=(late(deadline=LATER),), pods=HALF)
    assert statuses(seen, now=LATER + timedelta(milliseconds=1)).requeue_after == 0.0


def test_a_pool_that_no_longer_releases_gets_its_nodes_at_once():
    waits = late(on_deadline="Wait", **release(3, LATER))
    assert decided(observed(pools=(waits,))).suspended_pools == {}
    assert record_of(late(**release(3, LATER))) == Retries(failures=3, next=LATER)
