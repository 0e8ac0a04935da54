"""Whose turn it is, in virtual time."""

import asyncio

import pytest

from tests.unit.virtual_time import now, run
from workergroups_operator.timings import Timings
from workergroups_operator.work_queue import NAMESPACE_RECONCILES, RECONCILES, FairReconciles

QUICK = 0.02


class Turns:
    """Turns of several namespaces, and how long each waited for its own."""

    def __init__(self):
        self.write_seconds = {}
        self.turns = FairReconciles(lambda namespace: self.write_seconds.get(namespace, 0.0), Timings())
        self.waited = {}
        self.running = {}
        self.most = {}
        self.most_of_all = 0

    async def take(self, namespace, seconds):
        asked = now()
        async with self.turns.slot(namespace):
            self.waited.setdefault(namespace, []).append(now() - asked)
            self.running[namespace] = self.running.get(namespace, 0) + 1
            self.most[namespace] = max(self.most.get(namespace, 0), self.running[namespace])
            self.most_of_all = max(self.most_of_all, sum(self.running.values()))
            try:
                await asyncio.sleep(seconds)
            finally:
                self.running[namespace] -= 1

    async def repeat(self, namespace, seconds, count):
        for _ in range(count):
            await self.take(namespace, seconds)
            await asyncio.sleep(0.3)


def healthy_waits_beside(crowd):
    """The longest that a healthy cluster waits, of a hundred quick turns, beside (namespace, seconds of a turn)."""
    turns = Turns()

    async def scenario():
        others = [asyncio.create_task(turns.repeat(*each, 20)) for each in crowd]
        await asyncio.sleep(0)
        await turns.repeat("healthy", QUICK, 100)
        for task in others:
            task.cancel()

    run(scenario())
    return max(turns.waited["healthy"])


@pytest.mark.parametrize(
    ("crowd", "longest"),
    [
        ([], 0),
        ([("big", QUICK)] * 2000, 0),
        ([("big", 10.0)] * 300, 0),
        ([(f"quick-{number % 100}", QUICK) for number in range(300)], 100 / RECONCILES * QUICK),
    ],
    ids=["nobody", "2,000 in one", "300 long ones in one", "300 in a hundred"],
)
def test_a_namespace_waits_for_one_turn_of_each_other_at_most(crowd, longest):
    assert healthy_waits_beside(crowd) <= longest + QUICK


def test_turns_are_few_at_once_and_fewer_of_one_namespace():
    turns = Turns()

    async def scenario():
        names = ["a"] * 40 + [f"n{number}" for number in range(40)]
        await asyncio.gather(*(turns.take(name, 5.0) for name in names))

    run(scenario())
    assert turns.most["a"] == NAMESPACE_RECONCILES
    assert turns.most_of_all == RECONCILES


def test_of_many_the_quickest_comes_first_and_the_slowest_is_not_forgotten():
    turns = Turns()
    turns.write_seconds = {f"slow-{number}": 10.0 for number in range(100)}

    async def scenario():
        slow = [asyncio.create_task(turns.repeat(name, 1.0, 10)) for name in turns.write_seconds]
        await asyncio.sleep(10)
        await turns.repeat("healthy", QUICK, 20)
        await asyncio.gather(*slow)

    run(scenario())
    assert max(turns.waited["healthy"]) <= 1.0
    assert all(len(turns.waited[name]) == 10 for name in turns.write_seconds)


def test_who_gives_up_waiting_or_running_leaves_the_turn_to_others():
    turns = Turns()

    async def scenario():
        running = [asyncio.create_task(turns.take("a", 100.0)) for _ in range(NAMESPACE_RECONCILES)]
        waiting = [asyncio.create_task(turns.take("a", QUICK)) for _ in range(3)]
        await asyncio.sleep(0.1)
        waiting[0].cancel()
        running[0].cancel()
        await asyncio.gather(*waiting[1:])
        return now()

    assert run(scenario()) == pytest.approx(0.1 + 2 * QUICK)
