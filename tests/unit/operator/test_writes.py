"""No reconcile waits for long for what admission delays, in virtual time."""

import asyncio
from functools import partial

import pytest

from tests.unit.operator.make import KEY, TIMINGS
from tests.unit.virtual_time import now, run
from workergroups_operator.membership import ClusterKey
from workergroups_operator.work_queue import RECONCILES, Result, WorkQueue
from workergroups_operator.writes import REMEMBERED, Writes


class ApiServer:
    """Writes take as long as their namespace's webhook."""

    def __init__(self):
        self.under_way = {}
        self.most = {}
        self.ended = []

    async def write(self, name, seconds, namespace="team"):
        self.under_way[namespace] = self.under_way.get(namespace, 0) + 1
        self.most[namespace] = max(self.most.get(namespace, 0), self.under_way[namespace])
        try:
            await asyncio.sleep(seconds)
            self.ended.append(name)
            return f"{name} written"
        finally:
            self.under_way[namespace] -= 1


def scene(at_once=4):
    enqueued = []
    return ApiServer(), Writes(enqueued.append, TIMINGS, at_once=at_once), enqueued


def test_quick_writes_are_answered_in_the_same_turn():
    api, writes, enqueued = scene()

    async def scenario():
        return await writes.run(KEY, {name: partial(api.write, name, 0.01) for name in "abcdefgh"})

    assert run(scenario()) == {name: f"{name} written" for name in "abcdefgh"}
    assert api.most["team"] == 4
    assert not enqueued


def test_a_late_write_continues_alone_and_its_cluster_gets_a_turn_when_it_ends():
    api, writes, enqueued = scene()

    async def scenario():
        answers = await writes.run(KEY, {"quick": partial(api.write, "q", 0.01), "slow": partial(api.write, "s", 10)})
        went_on = now()
        again = await writes.run(KEY, {"slow": partial(api.write, "again", 10)})
        await asyncio.sleep(9)
        before = list(enqueued)
        await asyncio.sleep(1)
        return answers, went_on, again, before

    assert run(scenario()) == ({"quick": "q written"}, TIMINGS.write_wait, {}, [])
    assert api.ended == ["q", "s"]
    assert enqueued == [KEY]


def test_turns_of_a_slow_namespace_do_not_wait_until_a_write_is_quick_again():
    api, writes, _ = scene()

    async def took(name, seconds):
        began = now()
        await writes.run(KEY, {name: partial(api.write, name, seconds)})
        return now() - began

    async def scenario():
        late, slow = await took("a", 10), await took("b", 10)
        await asyncio.sleep(20)
        still_slow = await took("c", 0.1)
        await asyncio.sleep(1)
        return late, slow, still_slow, await took("d", 0.1)

    assert run(scenario()) == (TIMINGS.write_wait, 0, 0, pytest.approx(0.1))


def test_a_write_that_found_no_slot_is_forgotten_and_its_cluster_gets_a_turn_when_there_is_one():
    api, writes, enqueued = scene(at_once=1)
    other = ClusterKey("team", "other")

    async def scenario():
        await writes.run(KEY, {"first": partial(api.write, "first", 10)})
        await writes.run(other, {"second": partial(api.write, "second", 10)})
        await asyncio.sleep(20)

    run(scenario())
    assert api.ended == ["first"]
    assert enqueued == [KEY, other]


def test_a_reconcile_that_is_ended_leaves_its_writes_to_the_next_one():
    api, writes, enqueued = scene()

    async def scenario():
        turn = asyncio.create_task(writes.run(KEY, {"a": partial(api.write, "a", 10)}))
        await asyncio.sleep(0.1)
        turn.cancel()
        await asyncio.sleep(11)

    run(scenario())
    assert api.ended == ["a"]
    assert enqueued == [KEY]


def test_a_namespace_is_known_to_be_slow_while_its_first_write_is_under_way():
    api, writes, _ = scene()

    async def scenario():
        before = writes.seconds("team")
        await writes.run(KEY, {"a": partial(api.write, "a", 10)})
        await asyncio.sleep(4)
        during = writes.seconds("team")
        await asyncio.sleep(10)
        after = writes.seconds("team")
        await writes.run(KEY, {"b": partial(api.write, "b", 0.01)})
        await asyncio.sleep(1)
        return before, during, after, writes.seconds("team")

    assert run(scenario()) == (TIMINGS.write_unknown, pytest.approx(4, abs=0.3), 10, pytest.approx(0.01, abs=0.001))


def test_it_remembers_for_a_limited_number_of_namespaces_how_quick_they_are():
    api, writes, _ = scene()

    async def scenario():
        for number in range(REMEMBERED + 10):
            key = ClusterKey(f"team-{number}", "k")
            await writes.run(key, {number: partial(api.write, "a", 0.01)})
        return [writes.seconds(f"team-{number}") for number in range(REMEMBERED + 10)]

    known = run(scenario())
    assert known[:10] == [TIMINGS.write_unknown] * 10
    assert max(known[10:]) < TIMINGS.write_quick


def test_nothing_follows_a_write_that_is_cancelled():
    api, writes, enqueued = scene()

    async def scenario():
        await writes.run(KEY, {"a": partial(api.write, "a", 10)})
        writes.cancel("a")
        writes.cancel("unknown")
        await asyncio.sleep(1)
        await writes.run(KEY, {"b": partial(api.write, "b", 10)})
        await writes.close()

    run(scenario())
    assert not api.ended
    assert not enqueued


@pytest.mark.parametrize(
    ("is_new", "first"),
    [(True, 100 / RECONCILES * 2 * TIMINGS.write_wait + 0.2), (False, 1.0)],
    ids=["nobody is known to be slow or quick", "its namespace has been served before"],
)
def test_a_healthy_cluster_is_served_at_once_next_to_300_behind_a_webhook_of_10_seconds(is_new, first):
    """Each reconcile writes twice, as reconciles of new clusters do."""
    api = ApiServer()
    served = []

    async def scenario():
        async def turn(key):
            for step in steps:
                seconds = 0.02 if key.namespace == "healthy" else 10
                await step.run(key, {(key, step): partial(api.write, key, seconds, key.namespace)})
            if key.namespace == "healthy":
                served.append(now())
            return Result(float("inf"))

        queue = WorkQueue(turn, lambda namespace: max(step.seconds(namespace) for step in steps), TIMINGS)
        steps = [Writes(queue.add, TIMINGS, at_once=4) for _ in range(2)]
        if not is_new:
            queue.add(ClusterKey("healthy", "before"))
            await asyncio.sleep(1)
        for number in range(300):
            queue.add(ClusterKey(f"slow-{number % 100}", f"c{number}"))
        waits = []
        for number in range(50):
            asked = now()
            queue.add(ClusterKey("healthy", f"c{number}"))
            await asyncio.sleep(5)
            waits.append(served[-1] - asked)
        await queue.close()
        for step in steps:
            await step.close()
        return waits

    waits = run(scenario())
    assert waits[0] < first
    assert max(waits[1:]) < 0.3
