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


@pytest.mark.parametrize(("failures", "seconds"), [(1, 0.5), (2, 1), (3, 2), (8, 60), (50, 60)])
def test_retries_back_off_to_a_minute(failures, seconds):
    assert retry_delay(failures) == seconds
