"""Whose turn it is, in virtual time."""

import asyncio

import pytest
from virtual_time import now, run

from workergroups_operator.fair_turns import MOMENT_SECONDS, NAMESPACE_TURNS, QUICK_TURNS, SLOW_TURNS, FairTurns

QUICK = 0.02


class Turns:
    """Turns of several namespaces, and how long each waited for its own."""

    def __init__(self):
        self.turns = FairTurns()
        self.waited = {}
        self.running = {}
        self.most = {}
        self.most_of_all = 0

    async def take(self, namespace, seconds):
        asked = now()

        async def work():
            self.waited.setdefault(namespace, []).append(now() - asked)
            self.running[namespace] = self.running.get(namespace, 0) + 1
            self.most[namespace] = max(self.most.get(namespace, 0), self.running[namespace])
            self.most_of_all = max(self.most_of_all, sum(self.running.values()))
            try:
                await asyncio.sleep(seconds)
            finally:
                self.running[namespace] -= 1

        await self.turns.run(namespace, work)

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
    return turns.waited["healthy"]


@pytest.mark.parametrize(
    ("crowd", "at_first", "later"),
    [
        ([], 0, 0),
        ([("big", QUICK)] * 2000, QUICK, QUICK),
        ([("slow", 10.0)] * 300, 0, 0),
        ([(f"slow-{number % 100}", 10.0) for number in range(300)], 100 / QUICK_TURNS * MOMENT_SECONDS, 0.05),
        ([(f"quick-{number % 100}", QUICK) for number in range(300)], 1, 0.2),
    ],
    ids=["nobody", "2,000 in one", "300 slow in one", "300 slow in a hundred", "300 quick in a hundred"],
)
def test_a_healthy_namespace_waits_for_nobody_for_long(crowd, at_first, later):
    waits = healthy_waits_beside(crowd)
    assert max(waits) <= at_first + 0.01
    assert max(waits[len(waits) // 4 :]) <= later + 0.01


def test_turns_of_one_namespace_are_few_at_once():
    turns = Turns()

    async def scenario():
        await asyncio.gather(*(turns.take("a", seconds) for seconds in [QUICK, 5.0] * 20))

    run(scenario())
    assert turns.most["a"] == NAMESPACE_TURNS


def test_slow_namespaces_share_the_slow_lane_and_all_get_their_turn():
    turns = Turns()

    async def scenario():
        clusters = [f"slow-{number}" for number in range(100)] * 3
        await asyncio.gather(*(turns.take(namespace, 10.0) for namespace in clusters))
        return now()

    took = run(scenario())
    assert took <= 10.0 * (1 + 300 / SLOW_TURNS) + 100 / QUICK_TURNS * MOMENT_SECONDS
    assert turns.most_of_all == QUICK_TURNS + SLOW_TURNS


def test_a_namespace_that_was_slow_is_quick_again_after_a_quick_turn():
    turns = Turns()

    async def scenario():
        await turns.take("a", 10.0)
        others = [asyncio.create_task(turns.take(f"slow-{number}", 1000.0)) for number in range(2 * SLOW_TURNS)]
        await asyncio.sleep(100)
        waiting = asyncio.create_task(turns.take("a", QUICK))
        await asyncio.sleep(1)
        for task in others:
            task.cancel()
        await waiting
        await turns.take("a", QUICK)

    run(scenario())
    assert turns.waited["a"][-1] == 0


def test_who_gives_up_waiting_or_running_leaves_the_turn_to_others():
    turns = Turns()

    async def scenario():
        running = [asyncio.create_task(turns.take("a", 100.0)) for _ in range(NAMESPACE_TURNS)]
        waiting = [asyncio.create_task(turns.take("a", QUICK)) for _ in range(3)]
        await asyncio.sleep(0.1)
        waiting[0].cancel()
        running[0].cancel()
        await asyncio.gather(*waiting[1:])
        return now()

    assert run(scenario()) == pytest.approx(0.1 + 2 * QUICK)
