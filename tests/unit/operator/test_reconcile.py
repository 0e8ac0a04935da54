"""Failed reconciles leave no condition that may be untrue; an API server that is away changes none."""

import asyncio

import pytest

from tests.unit.operator.make import KEY, SETTINGS, TIMINGS, Reads, api_error, group, pool
from tests.unit.virtual_time import now, run
from workergroups_api import manifest as kinds
from workergroups_api.conditions import find
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP
from workergroups_kube import RefusedObject
from workergroups_operator import reconcile
from workergroups_operator.failing_reconciles import FailingReconciles
from workergroups_operator.heartbeats import Heartbeats
from workergroups_operator.membership import Membership
from workergroups_operator.metrics import Metrics
from workergroups_operator.reconcile import Reconciler
from workergroups_operator.work_queue import Result, WorkQueue

BOUND = 5.0
MEMBERS = Membership(
    {("team", "actors"): ["actors"]}, {("team", "actors"): ["actors"]}, {("team", "actors"): [("trainer", ("actors",))]}
)
OTHERS = (kinds.RAY_CLUSTER, kinds.SECRET, kinds.LEASE, kinds.ROLE, kinds.SERVICE)


class Client(Reads):
    """Has a pool and a group. `failing` says what a read of a kind raises now; None if it succeeds."""

    def __init__(self, failing, seconds=0.0):
        self._failing = failing
        self._seconds = seconds

    async def get(self, kind, namespace, name, **_):
        if (error := self._failing(kind)) is not None:
            await asyncio.sleep(self._seconds)
            raise error
        found = {RESOURCE_POOL: pool, WORKER_GROUP: group}.get(kind)
        return found(name).model_dump(mode="json", by_alias=True) if found else None

    async def pages(self, kind, namespace, make, **_):
        if (error := self._failing(kind)) is not None:
            raise error
        for _ in ():
            yield


class ReadsOnly(Reconciler):
    """Its reconciles end with what they have read."""

    async def _steps(self, observed):
        return Result(60.0)


class Publisher:
    """Remembers when the objects of a kind became Unknown, and why."""

    def __init__(self):
        self.unknown = {}

    async def publish(self, key, updates, *, are_all=True):
        for update in updates:
            ready = find(update.after.conditions, "Ready")
            assert ready.status == "Unknown"
            self.unknown.setdefault(update.kind, (now(), ready.reason, ready.message))


def unknown_within(seconds, failing, monkeypatch=None, turn=None, failing_seconds=0.0):
    """When pools and groups become Unknown, and why, while the operator reconciles for these seconds."""

    async def scenario():
        publisher = Publisher()
        beats, failed = Heartbeats(TIMINGS), FailingReconciles(TIMINGS, now)
        reconciler = ReadsOnly(
            Client(failing, failing_seconds),
            MEMBERS,
            beats,
            None,
            None,
            publisher,
            failed,
            SETTINGS,
            TIMINGS,
            Metrics(),
        )
        if turn is not None:
            monkeypatch.setattr(reconcile, "observe", turn)
        queue = WorkQueue(reconciler.reconcile, lambda _: 0.0, TIMINGS)
        queue.add(KEY)
        await asyncio.sleep(seconds)
        await queue.close()
        return publisher.unknown

    return run(scenario())


@pytest.mark.parametrize("kind", [*OTHERS, kinds.POD], ids=lambda kind: kind.kind)
@pytest.mark.parametrize(
    "error",
    [api_error(403), api_error(500), TimeoutError(), RefusedObject("too large", b""), ValueError("a fault of ours")],
    ids=["403", "500", "time-out", "too large", "another exception"],
)
def test_what_cannot_be_read_makes_all_conditions_unknown_within_the_bound(kind, error):
    unknown = unknown_within(BOUND, lambda asked: error if asked is kind else None)
    assert unknown.keys() == {RESOURCE_POOL, WORKER_GROUP}


def test_a_kind_about_which_the_api_server_is_silent_makes_all_conditions_unknown_a_little_later():
    """A read fails after five seconds."""
    unknown = unknown_within(11.0, lambda asked: TimeoutError() if asked is kinds.ROLE else None, failing_seconds=5.0)
    assert unknown.keys() == {RESOURCE_POOL, WORKER_GROUP}


def test_it_reports_what_the_api_server_said():
    unknown = unknown_within(BOUND, lambda asked: api_error(403, "what it says") if asked is kinds.POD else None)
    _, reason, message = unknown[RESOURCE_POOL]
    assert reason == "ReadFailed"
    assert "cannot read what exists for cluster actors" in message
    assert "what it says" in message


def test_a_failure_that_ends_soon_changes_no_condition():
    def failing(kind):
        return api_error(500) if kind is kinds.POD and now() < 1.0 else None

    assert unknown_within(1.5, failing) == {}


@pytest.mark.parametrize("error", [api_error(503), TimeoutError(), OSError()], ids=["503", "time-out", "no connection"])
def test_an_api_server_that_is_away_changes_no_condition(error):
    assert unknown_within(600.0, lambda _: error) == {}


def test_an_api_server_that_is_back_between_two_reads_of_a_reconcile_changes_no_condition():
    """The reconcile fails, and then pools and groups can be read."""

    def failing(kind):
        return api_error(503) if now() < 600.0 and kind not in (RESOURCE_POOL, WORKER_GROUP) else None

    def away(kind):
        return api_error(503) if now() < 598.0 else failing(kind)

    assert unknown_within(600.0, away) == {}


def test_a_group_that_cannot_be_read_leaves_the_pool_unknown_a_little_later():
    unknown = unknown_within(12.0, lambda asked: api_error(500) if asked is WORKER_GROUP else None)
    assert unknown.keys() == {RESOURCE_POOL}
    assert unknown[RESOURCE_POOL][0] >= TIMINGS.partly_unread


def test_a_reconcile_that_hangs_ends_and_leaves_all_unknown(monkeypatch):
    async def hang(*_):
        await asyncio.Event().wait()

    unknown = unknown_within(TIMINGS.reconcile + 1, lambda _: None, monkeypatch, hang)
    assert unknown.keys() == {RESOURCE_POOL, WORKER_GROUP}


class Memory:
    """Remembers which clusters it was told to forget."""

    def __init__(self):
        self.forgotten = []

    def forget(self, key):
        self.forgotten.append(key)


def test_a_cluster_without_pools_and_groups_is_forgotten_and_nothing_is_read():
    """While a namespace is deleted, each of thousands of objects that vanish is an event of such a cluster."""
    memories = trials, beats, applier, failing, publisher = [Memory() for _ in range(5)]
    nobody = Membership({}, {}, {})
    reconciler = Reconciler(None, nobody, beats, trials, applier, publisher, failing, SETTINGS, TIMINGS, Metrics())
    assert asyncio.run(reconciler.reconcile(KEY)) == Result(None)
    assert [memory.forgotten for memory in memories] == [[KEY]] * 5
