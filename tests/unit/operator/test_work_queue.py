"""The queue's promises, in milliseconds."""

import asyncio

import pytest

from workergroups_operator import work_queue
from workergroups_operator.work_queue import Result, WorkQueue, retry_delay


def run(scenario):
    return asyncio.run(asyncio.wait_for(scenario, timeout=5))


def test_additions_during_the_work_lead_to_one_more_run():
    runs = []

    async def scenario():
        gate = asyncio.Event()

        async def work(key):
            runs.append(key)
            await gate.wait()
            return Result(None)

        queue = WorkQueue(work)
        queue.add("k")
        await asyncio.sleep(0.01)
        for _ in range(5):
            queue.add("k")
        gate.set()
        await asyncio.sleep(0.01)
        await queue.close()

    run(scenario())
    assert runs == ["k", "k"]


def test_a_key_is_looked_at_again_after_the_delay_that_it_asked_for():
    runs = []

    async def scenario():
        done = asyncio.Event()

        async def work(key):
            runs.append(key)
            if len(runs) == 3:
                done.set()
                return Result(None)
            return Result(0.01)

        queue = WorkQueue(work)
        queue.add("k")
        await done.wait()
        await queue.close()

    run(scenario())
    assert len(runs) == 3


def test_a_failure_is_tried_again(monkeypatch):
    monkeypatch.setattr(work_queue, "FIRST_RETRY_SECONDS", 0.01)
    runs = []

    async def scenario():
        done = asyncio.Event()

        async def work(key):
            runs.append(key)
            if len(runs) == 1:
                raise RuntimeError("a fault of ours")
            if len(runs) == 2:
                return Result(60.0, "the API server is away")
            done.set()
            return Result(None)

        queue = WorkQueue(work)
        queue.add("k")
        await done.wait()
        await queue.close()

    run(scenario())
    assert len(runs) == 3


def test_a_key_that_is_added_without_end_is_worked_on_so_often_and_no_more(monkeypatch):
    monkeypatch.setattr(work_queue, "RUNS_AT_ONCE", 5)
    runs = []

    async def scenario():
        async def work(key):
            runs.append(key)
            queue.add("k")
            return Result(60.0)

        queue = WorkQueue(work)
        queue.add("k")
        await asyncio.sleep(0.5)
        await queue.close()

    run(scenario())
    assert len(runs) == 5


@pytest.mark.parametrize(
    ("failing_seconds", "is_urgent", "seconds"),
    [
        (0, False, 0.5),
        (0.4, False, 0.5),
        (3, False, 3),
        (50, False, 50),
        (500, False, 60),
        (0, True, 0.5),
        (50, True, 2),
    ],
)
def test_retries_back_off_to_a_minute_and_urgent_ones_to_two_seconds(failing_seconds, is_urgent, seconds):
    assert retry_delay(failing_seconds, is_urgent=is_urgent) == seconds


def test_many_failures_in_a_moment_are_one_failure_for_the_time_of_the_next_try(monkeypatch):
    """As when each event of a busy moment finds the API server away: afterwards no event may come for long."""
    monkeypatch.setattr(work_queue, "FIRST_RETRY_SECONDS", 0.2)

    async def scenario():
        ran = asyncio.Event()

        async def work(key):
            ran.set()
            return Result(None, "the API server is away", is_urgent=True)

        queue = WorkQueue(work)
        for _ in range(20):
            queue.add("k")
            await asyncio.sleep(0.005)
        for _ in range(2):
            ran.clear()
            async with asyncio.timeout(5):
                await ran.wait()
        await queue.close()

    run(scenario())
