"""Which events the operator records with a status, and when it tries again what the API server refuses."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import pytest

from tests.unit.operator.make import KEY, NOW, TIMINGS, api_error, group
from tests.unit.virtual_time import now, run
from workergroups_api.conditions import Condition
from workergroups_api.group_status import WorkerGroupStatus
from workergroups_api.manifest import WORKER_GROUP, Manifest
from workergroups_kube import Kube
from workergroups_operator.events import NAMESPACE_MOST, Events
from workergroups_operator.membership import ClusterKey
from workergroups_operator.metrics import Metrics
from workergroups_operator.publish import NAMESPACE_WRITES, Publisher, event, is_news
from workergroups_operator.status.conclusion import StatusUpdate


def ready(status: Any, reason: str, message: str = "") -> Condition:
    return Condition(type="Ready", status=status, reason=reason, message=message, last_transition_time=NOW)


CAUSES = ("ProcessDied", "Preempted", "Hung")


def update(before: Condition | None, after: Condition) -> StatusUpdate:
    status, is_cause = WorkerGroupStatus(), after.reason in CAUSES
    return StatusUpdate(WORKER_GROUP, group().metadata, status, status, before, after, is_cause=is_cause)


@pytest.mark.parametrize(
    ("before", "after", "is_told"),
    [
        (None, ready("False", "WaitingForPools"), True),
        (ready("True", "RanksReady"), ready("True", "PausedByDebugger"), False),
        (ready("True", "RanksReady"), ready("True", "Complete"), True),
        (ready("True", "Complete"), ready("True", "Complete"), False),
        (ready("True", "RanksReady"), ready("False", "ProcessDied"), True),
        (ready("False", "Launching"), ready("False", "RanksStarting"), False),
        (ready("False", "PoolNotReady"), ready("False", "Hung"), True),
        (ready("False", "PoolNotReady"), ready("False", "Preempted"), True),
        (ready("False", "Preempted", "restarted at 12:00"), ready("False", "Preempted", "restarted at 12:01"), False),
        (ready("False", "Hung", "suspect: rank 1"), ready("False", "Hung", "suspect: rank 2"), False),
        (ready("False", "Hung"), ready("False", "PoolNotReady"), False),
        (ready("False", "Hung"), ready("True", "RanksReady"), True),
    ],
)
def test_a_change_of_ready_is_told_and_so_is_a_cause_that_is_known_later(before, after, is_told):
    assert is_news(update(before, after)) is is_told


@pytest.mark.parametrize(
    ("after", "type_", "reason"),
    [
        (ready("True", "RanksReady"), "Normal", "Ready"),
        (ready("True", "Complete"), "Normal", "Complete"),
        (ready("False", "ProcessDied"), "Warning", "NotReady"),
        (ready("False", "Hung", "suspect: rank 2 in data.py:17 in read_shard"), "Warning", "Hung"),
    ],
)
def test_the_event_has_the_reason_and_the_message(after, type_, reason):
    told = event(update(None, after), NOW)
    assert (told["type"], told["reason"]) == (type_, reason)
    assert told["note"] == f"{after.reason}: {after.message}"


def test_a_status_whose_object_was_not_there_is_not_taken_for_written() -> None:
    api = ApiServer()
    api.absent = {"a"}

    async def scenario() -> None:
        publisher = publisher_of(api)
        for _ in range(2):
            assert await publisher.publish(KEY, [change("a")]) is None
            await asyncio.sleep(WEBHOOK_SECONDS + TIMINGS.urgent_retry.last)
            api.absent = set()
        assert api.applied == ["a", "a"]

    run(scenario())


WEBHOOK_SECONDS = 1.0


class ApiServer:
    """Takes a second for each status, and refuses those of some groups."""

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self.absent: set[str] = set()
        self.applied: list[str] = []
        self.event_seconds = 0.0
        self.events: list[str] = []

    async def apply_status(self, manifest: Manifest) -> None:
        await asyncio.sleep(WEBHOOK_SECONDS)
        name = manifest["metadata"]["name"]
        self.applied.append(name)
        if name in self.absent:
            raise api_error(404)
        if name in self.refused:
            raise api_error(403)

    async def create(self, manifest: Manifest) -> None:
        """Take an event."""
        await asyncio.sleep(self.event_seconds)
        self.events.append(manifest["note"])


def publisher_of(api: ApiServer, enqueue: Callable[[ClusterKey], None] = lambda _: None) -> Publisher:
    client = cast(Kube, api)
    return Publisher(client, Events(client), enqueue, TIMINGS, Metrics())


def change(name: str, version: str = "1", ready_before: Condition | None = None) -> StatusUpdate:
    metadata = group().metadata | {"name": name, "uid": name, "resourceVersion": version}
    before, after = (WorkerGroupStatus(incarnation=number) for number in (1, 2))
    return StatusUpdate(WORKER_GROUP, metadata, before, after, ready_before, ready("False", "PoolNotReady"))


def test_an_object_without_a_status_gets_its_first_before_others_get_their_next() -> None:
    api = ApiServer()

    async def scenario() -> None:
        publisher = publisher_of(api)
        for version in range(5):
            ever_new = [
                change(f"old-{number}", str(version), ready("False", "Launching")) for number in range(NAMESPACE_WRITES)
            ]
            await publisher.publish(KEY, [*ever_new, change("new")])
            await asyncio.sleep(1.2 * WEBHOOK_SECONDS)
        await publisher.writes.close()

    run(scenario())
    assert api.applied.index("new") < NAMESPACE_WRITES


def test_a_ready_that_is_untrue_is_corrected_before_messages_change() -> None:
    api = ApiServer()

    async def scenario() -> None:
        publisher = publisher_of(api)
        others = [change(f"same-{number}", "1", ready("False", "Launching")) for number in range(2 * NAMESPACE_WRITES)]
        await publisher.publish(KEY, [*others, change("untrue", "1", ready("True", "RanksReady"))])
        await asyncio.sleep(1.2 * WEBHOOK_SECONDS)
        await publisher.writes.close()

    run(scenario())
    assert "untrue" in api.applied


def test_statuses_that_are_refused_hold_no_other_up_and_lead_to_few_turns() -> None:
    api, turns = ApiServer(), []

    async def scenario() -> None:
        wake = asyncio.Event()
        publisher = publisher_of(api, lambda _: wake.set())
        updates = [change(f"refused-{number}") for number in range(2 * NAMESPACE_WRITES)]
        api.refused = {update.metadata["name"] for update in updates}
        while now() < 30:
            turns.append(now())
            is_done = "healthy" in api.applied
            await publisher.publish(KEY, updates + ([change("healthy")] if now() >= 10 and not is_done else []))
            with suppress(TimeoutError):
                await asyncio.wait_for(wake.wait(), TIMINGS.urgent_retry.last)
            wake.clear()
        await publisher.writes.close()

    run(scenario())
    assert api.applied.index("healthy") < 10 * NAMESPACE_WRITES + 2 * NAMESPACE_WRITES
    assert len(turns) < 100
    assert len(api.applied) < 30 * NAMESPACE_WRITES


def test_a_status_that_was_tried_is_tried_again_when_its_time_comes_or_the_object_changes() -> None:
    api = ApiServer()

    async def scenario() -> None:
        publisher = publisher_of(api)
        api.refused = {"a"}

        async def publish(version: str) -> str | None:
            said = await publisher.publish(KEY, [change("a", version)])
            await asyncio.sleep(1.2 * WEBHOOK_SECONDS)
            return said

        await publish("1")
        assert "status of WorkerGroup a" in str(await publish("1"))
        await publish("2")
        assert len(api.applied) == 2
        api.refused = set()
        await asyncio.sleep(TIMINGS.urgent_retry.last)
        await publish("2")
        assert len(api.applied) == 3
        await publish("2")
        assert len(api.applied) == 3, "it would have no effect again"
        await publish("3")
        assert len(api.applied) == 4
        publisher.forget(KEY)

    run(scenario())


def test_no_status_waits_for_an_event_that_admission_delays() -> None:
    api = ApiServer()
    api.event_seconds = 1000

    async def scenario() -> None:
        publisher = publisher_of(api)
        for version in range(3):
            await publisher.publish(KEY, [change("a", str(version))])
            await asyncio.sleep(1.2 * WEBHOOK_SECONDS)
        assert api.applied == ["a", "a", "a"]
        await asyncio.sleep(api.event_seconds)
        assert len(api.events) == 3

    run(scenario())


def test_as_many_events_of_a_namespace_wait_as_may_and_those_of_others_do_not_wait_for_them() -> None:
    api = ApiServer()
    api.event_seconds = 1

    def told(number: int, namespace: str = "slow") -> Manifest:
        metadata = {"name": f"g.{number}", "namespace": namespace}
        return {"metadata": metadata, "note": f"{namespace} {number}", "regarding": {"name": "g"}}

    async def scenario() -> None:
        events = Events(cast(Kube, api))
        for number in range(2 * NAMESPACE_MOST):
            events.tell(told(number))
        events.tell(told(0, "other"))
        await asyncio.sleep(1.5)
        assert "other 0" in api.events
        await asyncio.sleep(NAMESPACE_MOST)
        assert sorted(api.events) == sorted(["other 0", *(f"slow {number}" for number in range(NAMESPACE_MOST))])
        events.tell(told(0))
        await events.close()
        assert api.events[-1] != "slow 0"

    run(scenario())
