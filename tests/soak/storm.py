"""Writes without end to everything that the operator watches, as fast as the operator reads it."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from tests.simulation.api import MERGE, ApiError, path_of
from tests.simulation.scene import OPERATOR, Scene, group, pool
from tests.soak.etcd import Etcd
from workergroups_api.manifest import CONFIG_MAP, POD, RESOURCE_POOL, WORKER_GROUP, Kind
from workergroups_api.names import plan_name

# A renewal of a Lease is by far the most frequent event of a cluster. All Leases are renewed at once, after a rest that
# lets the operator keep up.
LEASE_REST = 0.03
LARGE = "large"
# Of one text: with its managed fields it is a little below etcd's limit.
LARGE_BYTES = 1_300_000


class Storm:
    """The writers, and how often each has written."""

    def __init__(self, scene: Scene, etcd: Etcd, clusters: Sequence[str], choices: random.Random) -> None:
        self._scene = scene
        self._etcd = etcd
        self._clusters = clusters
        self._random = choices
        self.writes: Counter[str] = Counter()

        # For how many seconds each rests between two writes.
        self._writers: tuple[tuple[str, Callable[[], Awaitable[int | None]], float], ...] = (
            ("Leases renewed", self._renew, LEASE_REST),
            ("groups edited", self._edit_group, 0.1),
            ("pods changed", self._change_pod, 0.1),
            ("plans spoilt", self._spoil_plan, 0.5),
            ("large groups edited", self._edit_large, 2.0),
            ("pools created and deleted", self._create_and_delete, 1.0),
            ("watches cut off", self._cut_off, 20.0),
        )

    def idle(self) -> list[str]:
        """Return what was never written."""
        return [name for name, *_ in self._writers if not self.writes[name]]

    async def blow(self) -> None:
        """Write until cancelled."""
        await self._scene.group(LARGE, worker={"class": "train.Trainer", "args": ["x" * LARGE_BYTES]})
        async with asyncio.TaskGroup() as tasks:
            for name, write, rest in self._writers:
                tasks.create_task(self._repeat(name, write, rest))

    async def _repeat(self, name: str, write: Callable[[], Awaitable[int | None]], rest: float) -> None:
        while True:
            try:
                written = await write()
                self.writes[name] += 1 if written is None else written
            except ApiError:  # It was replaced meanwhile.
                await asyncio.sleep(0.1)
            await asyncio.sleep(rest)

    async def _annotate(self, kind: Kind, name: str) -> None:
        patch = {"metadata": {"annotations": {"soak": str(self.writes.total())}}}
        path = path_of(kind, self._scene.namespace, name)
        await self._scene.api.send("PATCH", path, json.dumps(patch).encode(), MERGE)

    async def _renew(self) -> int:
        return await self._etcd.write_again(f"/registry/leases/{self._scene.namespace}/")

    async def _edit_group(self) -> None:
        await self._annotate(WORKER_GROUP, self._random.choice(self._clusters))

    async def _change_pod(self) -> None:
        pods = list(self._scene.world.machines.pods.values())
        await self._annotate(POD, self._random.choice(pods)["metadata"]["name"])

    async def _spoil_plan(self) -> None:
        name = plan_name(self._random.choice(self._clusters))
        await self._scene.api.merge(CONFIG_MAP, self._scene.namespace, name, {"data": {"soak": "x" * 1000}})

    async def _edit_large(self) -> None:
        await self._annotate(WORKER_GROUP, LARGE)

    async def _create_and_delete(self) -> None:
        namespace, name = self._scene.namespace, f"s{self.writes['pools created and deleted']}"
        await self._scene.api.create(pool(namespace, name))
        await self._scene.api.create(group(namespace, name))
        await asyncio.sleep(self._random.uniform(0, 3))
        await self._scene.api.delete(RESOURCE_POOL, namespace, name)
        await self._scene.api.delete(WORKER_GROUP, namespace, name)

    async def _cut_off(self) -> None:
        self._scene.proxy.cut_off(OPERATOR)
