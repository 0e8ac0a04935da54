"""Nothing small becomes large: whatever a tenant's objects add up to, other namespaces are served as without them."""

import asyncio
import itertools
import os
import statistics
import time
from contextlib import AsyncExitStack

import pytest

from tests.simulation.api import ApiError, eventually
from tests.simulation.monitor import SLACK_SECONDS
from tests.simulation.scene import Scene, condition, group, pool
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP
from workergroups_api.plan import MAX_NODE_PROCESSES, MAX_POOL_NODES

_NUMBERS = itertools.count(1)
POOLS, GROUPS = 16, 64
# Alone, it takes a twentieth of that; with each bundle expanded, it took longer than the operator lives.
FIRST_STATUS_SECONDS = 1 + SLACK_SECONDS


@pytest.fixture
def scene(access, runner):
    """A namespace with an operator, which also serves the one of a tenant."""
    stack = AsyncExitStack()
    victim, tenant = (f"{name}{os.getpid()}-{next(_NUMBERS)}" for name in ("victim", "tenant"))

    async def opened():
        found = await stack.enter_async_context(Scene.open(access, victim, others=(tenant,)))
        await found.api.create_namespace(tenant)
        stack.push_async_callback(found.api.delete_namespace, tenant)
        found.start_operator()
        return found

    yield runner.run(opened())
    runner.run(asyncio.wait_for(stack.aclose(), 120))


async def reason(scene, kind, name):
    found = await scene.api.get(kind, scene.namespaces[1], name)
    return condition(found)["reason"] if found.get("status", {}).get("conditions") else None


async def test_groups_on_the_largest_pools_cost_other_namespaces_nothing(scene):
    """Without a pod or a quota: the pools are suspended."""
    tenant = scene.namespaces[1]
    size = {"nodes": MAX_POOL_NODES, "processesPerNode": MAX_NODE_PROCESSES, "maxColocateCount": 100}
    for number in range(POOLS):
        await scene.api.create(pool(tenant, f"p{number}", clusterName="c", suspend=True, **size))
    for number in range(GROUPS):
        parts = [{"name": f"p{each}", "bundles": {"start": number, "count": 2000}} for each in range(POOLS)]
        await scene.api.create(group(tenant, f"g{number}", pools=parts))
    seconds = []
    for number in range(5):
        began = time.monotonic()
        await scene.pool(f"v{number}", suspend=True)
        await scene.until(RESOURCE_POOL, f"v{number}", "Ready", "False", "Suspended")
        seconds.append(time.monotonic() - began)
    # One of them may be late, as the machine runs other tests.
    assert statistics.median(seconds) < FIRST_STATUS_SECONDS
    await scene.api.create(group(tenant, "whole", pools=[{"name": f"p{each}"} for each in range(POOLS)]))

    async def is_told():
        told = await reason(scene, WORKER_GROUP, "whole"), await reason(scene, WORKER_GROUP, "g0")
        return told == ("GroupTooLarge", "PoolSuspended")

    await eventually("the statuses of the tenant's groups", is_told)


@pytest.mark.parametrize(
    "status",
    [
        {"ranks": {"failed": "0-99999," * 1000}},
        {"ranks": {"hang": {"method": "m", "since": "2026-01-01T00:00:00Z", "ranks": "5," * 5000, "message": "m"}}},
        {"ranks": {"message": "x" * 1_000_000}},
        {"ranks": {"failures": [{"rank": 0, "reason": "y" * 1000, "message": "m"}]}},
        {"conditions": [{"type": f"t{n}", "status": "True", "reason": "r"} for n in range(100)]},
    ],
    ids=["failed", "hang", "message", "reason", "conditions"],
)
async def test_a_status_that_says_more_than_there_can_be_is_refused(scene, status):
    """A user who may start pods can have the agent's token, and so write statuses."""
    await scene.group("g")
    for each in status.get("conditions", ()):
        each |= {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    with pytest.raises(ApiError, match="422"):
        await scene.api.merge(WORKER_GROUP, scene.namespace, "g", {"status": status}, subresource="status")
