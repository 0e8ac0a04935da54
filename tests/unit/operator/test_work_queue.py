"""The queue's promises, in virtual time."""

import asyncio
from itertools import pairwise

from tests.unit.operator.make import KEY, TIMINGS
from tests.unit.virtual_time import now, run
from workergroups_operator import work_queue
from workergroups_operator.membership import ClusterKey
from workergroups_operator.work_queue import Result, WorkQueue


def times_of_runs(work, seconds, also=None):
    """When a key that is added once is worked on, within some seconds of virtual time."""
    times = []

    async def scenario():
        async def noted(_):
            times.append(round(now(), 2))
            return await work(len(times), queue)

        queue = WorkQueue(noted, lambda _: 0.0, TIMINGS)
        queue.add(KEY)
        if also is not None:
            await also(queue)
        await asyncio.sleep(seconds)
        await queue.close()

    run(scenario())
    return times


def test_additions_during_a_run_lead_to_one_more_run():
    async def work(_number, _queue):
        await asyncio.sleep(1)
        return Result(None)

    async def add_often(queue):
        for _ in range(5):
            await asyncio.sleep(0.1)
            queue.add(KEY)

    assert times_of_runs(work, 10, add_often) == [0, 1.1]


def test_a_key_is_worked_on_again_after_the_delay_that_it_asked_for():
    async def work(number, _queue):
        return Result(7.0 if number < 3 else None)

    assert times_of_runs(work, 1000) == [0, 7.1, 14.2]


def test_without_any_reason_a_key_is_worked_on_again_within_the_time_of_a_resync():
    async def work(_number, _queue):
        return Result(float("inf"))

    times = times_of_runs(work, 3 * TIMINGS.resync)
    pauses = [after - before for before, after in pairwise(times)]
    assert len(pauses) >= 2
    assert all(TIMINGS.resync * 0.6 < pause < TIMINGS.resync + 1 for pause in pauses)


def test_a_run_that_raises_is_retried_soon_and_one_that_fails_with_back_off():
    async def work(number, _queue):
        if number == 1:
            raise RuntimeError("a fault of ours")
        return Result(60.0, "the API server is away") if number < 5 else Result(None)

    times = times_of_runs(work, 100)
    assert times == [0, 0.6, 1.3, 2.7, 5.5]


def test_a_key_that_is_added_without_end_is_worked_on_at_a_limited_rate(monkeypatch):
    monkeypatch.setattr(work_queue, "RUNS_AT_ONCE", 5)

    async def work(_number, queue):
        queue.add(KEY)
        return Result(60.0)

    assert len(times_of_runs(work, 10.5)) == 5 + 10


def test_events_during_a_pause_lead_to_one_run_after_it():
    async def work(number, _queue):
        return Result(60.0, pause=5.0 if number == 1 else 0.0)

    async def add_often(queue):
        for _ in range(20):
            await asyncio.sleep(0.1)
            queue.add(KEY)

    assert times_of_runs(work, 10, add_often) == [0, 5.0]


def test_many_failures_in_a_moment_are_one_failure_for_the_time_of_the_next_try():
    """As when each event of a busy moment finds the API server away: afterwards no event may come for long."""

    async def work(_number, _queue):
        return Result(None, "the API server is away", is_urgent=True)

    async def add_often(queue):
        for _ in range(20):
            queue.add(KEY)
            await asyncio.sleep(0.05)

    assert next(time for time in times_of_runs(work, 3, add_often) if time > 1.1) <= 2.5


def test_a_run_says_how_long_it_waited_for_others():
    waits = []

    async def work(_):
        await asyncio.sleep(3)
        return Result(None)

    async def scenario():
        queue = WorkQueue(work, lambda _: 0.0, TIMINGS, waits.append)
        for number in range(200):
            queue.add(ClusterKey("team", f"k{number}"))
        await asyncio.sleep(1000)
        await queue.close()

    run(scenario())
    assert len(waits) == 200
    assert (min(waits), max(waits) % 3) == (0, 0)
    assert max(waits) >= 3
