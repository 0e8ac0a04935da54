"""Slots in rotation: a task that is cancelled while it waits takes none, and none is lost."""

import asyncio

import pytest

from workergroups_common.rotation import Rotation


async def hold(rotation, owner, has_slot, until):
    async with rotation.slot(owner):
        has_slot.append(owner)
        await until.wait()


@pytest.mark.parametrize("cancelled", [["b"], ["b", "c"]], ids=["one of two", "all"])
def test_a_slot_that_ends_while_those_who_wait_are_cancelled_goes_to_the_next(cancelled):
    async def scenario():
        rotation, has_slot, until = Rotation(slots=1, of_one=1), [], asyncio.Event()
        tasks = {owner: asyncio.create_task(hold(rotation, owner, has_slot, until)) for owner in "abc"}
        await asyncio.sleep(0)
        # In one step of the event loop, as when the operator is told to stop, or the deadline of a turn passes.
        for owner in ("a", *cancelled):
            tasks[owner].cancel()
        ended = await asyncio.gather(*(tasks[owner] for owner in ("a", *cancelled)), return_exceptions=True)
        assert [type(each) for each in ended] == [asyncio.CancelledError] * len(ended)
        until.set()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        assert has_slot == ["a", *(owner for owner in "bc" if owner not in cancelled)]
        assert not rotation.is_full

    asyncio.run(scenario())


def test_a_slot_that_ends_at_the_moment_in_which_the_next_is_cancelled_is_not_lost():
    async def scenario():
        rotation, has_slot, until = Rotation(slots=1, of_one=1), [], asyncio.Event()
        tasks = {owner: asyncio.create_task(hold(rotation, owner, has_slot, until)) for owner in "ab"}
        await asyncio.sleep(0)
        tasks["a"].cancel()
        await asyncio.sleep(0)  # `b` has the slot, and has not run yet
        tasks["b"].cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        assert has_slot == ["a"]
        assert not rotation.is_full

    asyncio.run(scenario())
