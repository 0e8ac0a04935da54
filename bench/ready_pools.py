"""What ready pools cost as they become more, beside KubeRay: `python -m bench.ready_pools --sizes 50 100 200 400`.

The operator runs as its own process against a real API server with the real KubeRay. Kubelets, Ray and executors are
played, as in the tests of the API tier; the agents' reporters are real until their pools are ready. Then a writer
renews their Leases as often as they would, for they would need more memory than this machine has.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise

from bench.running_process import RunningProcess
from bench.waiting_pools import GROUPS_OF_A_POOL, operator, patched
from tests.simulation.api import Api, eventually
from tests.simulation.control_plane import Access, control_plane
from tests.simulation.scene import Scene, condition, group, pool
from tools.console import REPOSITORY, end_when_told
from workergroups_api.manifest import LEASE, RESOURCE_POOL, WORKER_GROUP, Manifest

POOLS_OF_A_NAMESPACE = 50
RENEW_SECONDS, AT_ONCE = 2.5, 20
READY_SECONDS = 600
SETTLE_SECONDS, WINDOW_SECONDS = 30, 60
NEW_POOLS = 5
COLUMNS = ("operator", "ray-operator", "kube-apiserver", "etcd")


@dataclass
class Row:
    """What a number of ready pools costs."""

    pools: int
    first_status: float = 0.0
    seconds_to_ready: float = 0.0
    patched: float = 0.0
    mib: dict[str, float] = field(default_factory=dict)
    percent: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        cells = [
            f"{self.pools:,}",
            f"{self.pools * GROUPS_OF_A_POOL:,}",
            *(f"{self.mib[name]:.0f} MiB, {self.percent[name]:.1f} %" for name in COLUMNS),
            f"{self.first_status:.2f} s",
            f"{self.patched:.1f}",
        ]
        return f"| {' | '.join(cells)} |"


class Crowd:
    """Namespaces of ready pools."""

    def __init__(self, access: Access, api: Api, stack: AsyncExitStack) -> None:
        self._access, self._api, self._stack = access, api, stack
        self._leases: list[tuple[str, str]] = []
        # By how many seconds a round of renewals was late at most.
        self.late = 0.0
        self.namespaces: list[str] = []

    async def grow(self) -> float:
        """Make a namespace of pools and groups ready; return the seconds."""
        name = f"n{len(self.namespaces)}"
        scene = await self._stack.enter_async_context(Scene.open(self._access, name, is_deleted=False))
        began = time.monotonic()
        for number in range(POOLS_OF_A_NAMESPACE):
            await scene.pool(f"p{number}")
            for each in range(GROUPS_OF_A_POOL):
                await self._api.create(group(name, f"p{number}-g{each}", pools=[{"name": f"p{number}"}]))
        await eventually(f"all of {name} is ready", lambda: self._are_ready(name), seconds=READY_SECONDS, every=1)
        seconds = time.monotonic() - began
        self._leases += [(name, each["metadata"]["name"]) for each in await self._api.list(LEASE, name)]
        await scene.world.end_agents()
        self.namespaces.append(name)
        return seconds

    async def _are_ready(self, namespace: str) -> bool:
        found = [each for kind in (RESOURCE_POOL, WORKER_GROUP) for each in await self._api.list(kind, namespace)]
        return all(condition(each).get("status") == "True" for each in found)

    async def renew(self) -> None:
        """Renew all Leases, each as often as its agent does. Never returns."""
        while True:
            due = time.monotonic() + RENEW_SECONDS
            for begin in range(0, len(self._leases), AT_ONCE):
                now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
                some = self._leases[begin : begin + AT_ONCE]
                renewed = (self._api.merge(LEASE, *lease, {"spec": {"renewTime": now}}) for lease in some)
                await asyncio.gather(*renewed)
                share = min(1.0, (begin + AT_ONCE) / len(self._leases))
                await asyncio.sleep(max(0.0, due - RENEW_SECONDS * (1 - share) - time.monotonic()))
            self.late = max(self.late, time.monotonic() - due)
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    async def first_status(self, name: str) -> float:
        """Return the seconds until a new pool has a status."""
        began, namespace = time.monotonic(), self.namespaces[0]
        await self._api.create(pool(namespace, name))

        async def has_status() -> bool:
            return bool(condition(await self._api.get(RESOURCE_POOL, namespace, name) or {}))

        await eventually("a first status", has_status, seconds=60, every=0.01)
        seconds = time.monotonic() - began
        await self._api.delete(RESOURCE_POOL, namespace, name)
        return seconds

    async def ready(self) -> int:
        """Return how many pools and groups are ready."""
        listed: list[Manifest] = []
        for namespace in self.namespaces:
            for kind in (RESOURCE_POOL, WORKER_GROUP):
                listed += await self._api.list(kind, namespace)
        return sum(condition(each).get("status") == "True" for each in listed)


async def measure(access: Access, sizes: Sequence[int], processes: Mapping[str, RunningProcess]) -> None:
    """Let the pools become more, and print a row for each size."""
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(Api.connect(access))
        crowd = Crowd(access, api, stack)
        tasks = await stack.enter_async_context(asyncio.TaskGroup())  # which ends this if no agent is renewed any more
        stack.callback(tasks.create_task(crowd.renew()).cancel)
        for size in sizes:
            row, before = Row(size), await patched(api)
            new = size - len(crowd.namespaces) * POOLS_OF_A_NAMESPACE
            for _ in range(new // POOLS_OF_A_NAMESPACE):
                row.seconds_to_ready = await crowd.grow()
            row.patched = (await patched(api) - before) / (new * (1 + GROUPS_OF_A_POOL))
            await asyncio.sleep(SETTLE_SECONDS)
            crowd.late = 0.0
            at_rest = await asyncio.gather(*(each.percent(WINDOW_SECONDS) for each in processes.values()))
            row.percent = dict(zip(processes, at_rest, strict=True))
            row.mib = {name: each.resident_mib for name, each in processes.items()}
            row.first_status = statistics.median([await crowd.first_status(f"new-{n}") for n in range(NEW_POOLS)])
            print(
                f"{row} {await crowd.ready()} are ready, the last {POOLS_OF_A_NAMESPACE} pools within "
                f"{row.seconds_to_ready:.0f} s; renewals are late by {crowd.late:.1f} s at most",
                flush=True,
            )


def main() -> None:
    """Measure this checkout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", type=int, default=[50, 100, 200, 400])
    arguments = parser.parse_args()
    sizes = [0, *arguments.sizes]
    if any(after <= before or after % POOLS_OF_A_NAMESPACE for before, after in pairwise(sizes)):
        parser.error(f"--sizes must rise, in multiples of {POOLS_OF_A_NAMESPACE}")
    end_when_told()
    with control_plane(REPOSITORY) as access, operator(REPOSITORY, access, None) as running:
        others = {name: RunningProcess(access.processes[name]) for name in COLUMNS[1:]}
        asyncio.run(measure(access, arguments.sizes, {"operator": running, **others}))


if __name__ == "__main__":
    main()
