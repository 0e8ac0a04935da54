"""Where admission is slow for many clusters, a healthy one in another namespace notices nothing."""

import asyncio
import os
import time
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from tests.simulation import operator
from tests.simulation.api import eventually
from tests.simulation.faults import WRITES, Delay, Rule
from tests.simulation.scene import OPERATOR, Scene, pool
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP

# Together more clusters than RECONCILES, and of each namespace as many as NAMESPACE_RECONCILES.
NAMESPACES = 3
POOLS_OF_EACH = 4
# Much longer than anything takes on a busy machine. The operator must not give up such a write earlier.
WEBHOOK_SECONDS = 60
HEALTHY = f"healthy{os.getpid()}"
SLOW = [f"slow{os.getpid()}-{number}" for number in range(NAMESPACES)]


def asks_the_webhook(request):
    return (
        request.client == OPERATOR
        and request.method in WRITES
        and request.namespace in SLOW
        and not request.subresource
    )


@pytest.fixture
def scene(access, runner, monkeypatch):
    """A healthy namespace; in the others each object is written after the webhook's time only."""
    stack = AsyncExitStack()
    monkeypatch.setattr(operator, "timings", replace(operator.timings, request=2 * WEBHOOK_SECONDS))

    async def opened():
        found = await stack.enter_async_context(Scene.open(access, HEALTHY, others=tuple(SLOW)))
        for namespace in SLOW:
            await found.api.create_namespace(namespace)
            stack.push_async_callback(found.api.delete_namespace, namespace)
        found.proxy.rule(Rule(asks_the_webhook, Delay(WEBHOOK_SECONDS), times=10**6))
        found.start_operator()
        return found

    found = runner.run(opened())
    yield found
    runner.run(asyncio.wait_for(stack.aclose(), 120))
    assert found.proxy.forbidden == []


async def first_status(scene, name):
    began = time.monotonic()
    await scene.pool(name)

    async def has_status():
        return (await scene.get(RESOURCE_POOL, name)).get("status", {}).get("conditions")

    await eventually("a first status", has_status, seconds=30, every=0.02)
    return time.monotonic() - began


@pytest.mark.timeout(180)
async def test_a_healthy_cluster_keeps_its_bounds_next_to_many_behind_a_slow_webhook(scene):
    for namespace in SLOW:
        for number in range(POOLS_OF_EACH):
            await scene.api.create(pool(namespace, f"p{number}"))

    async def all_say_that_they_wait():
        found = [body for namespace in SLOW for body in await scene.api.list(RESOURCE_POOL, namespace)]
        return all("status" in body for body in found)

    await eventually("a status of those that wait", all_say_that_they_wait, seconds=60, every=0.5)
    for number in range(5):
        assert await first_status(scene, f"p{number}") < WEBHOOK_SECONDS / 2
    await scene.group("p0")
    await scene.ready(WORKER_GROUP, "p0", seconds=WEBHOOK_SECONDS / 2)
