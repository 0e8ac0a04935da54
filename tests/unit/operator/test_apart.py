"""The loop takes the pure steps of large clusters outside the event loop."""

import asyncio
import threading

import pytest

from tests.unit.operator.make import group, observed, pool
from workergroups_operator.reconcile import _FEW, _apart


@pytest.mark.parametrize(("groups", "is_beside"), [(1, False), (_FEW + 1, True)])
def test_the_event_loop_does_not_wait_for_the_steps_of_a_large_cluster(groups, is_beside):
    seen = observed(pools=(pool(),), groups=tuple(group(f"g{number}") for number in range(groups)), pods=())

    async def threads():
        return threading.get_ident(), await _apart(seen, lambda _: threading.get_ident())

    loop, steps = asyncio.run(threads())
    assert (steps != loop) is is_beside


@pytest.mark.parametrize("groups", [1, _FEW + 1])
def test_what_a_step_raises_is_raised(groups):
    seen = observed(groups=tuple(group(f"g{number}") for number in range(groups)))

    def step(_):
        raise ValueError("odd")

    with pytest.raises(ValueError, match="odd"):
        asyncio.run(_apart(seen, step))
