"""A namespace with everything that a test needs: the proxy, the operator, the world, and a user's actions."""

import asyncio
import gc
import random
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Self

from tests.simulation.api import Api
from tests.simulation.control_plane import Access
from tests.simulation.faults import WEBHOOK, Faults, Request, Rule
from tests.simulation.operator import operator, use_api_server
from tests.simulation.process import Process
from tests.simulation.program import Program
from tests.simulation.proxy import Proxy
from tests.simulation.world import World
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP, Kind, Manifest
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.worker_group import WorkerGroup

OPERATOR = "operator"
# Of a group whose failed ranks stay as they are.
NEVER_RESTARTED: Mapping[str, Any] = {"failurePolicy": {"restart": "Never"}}


class Scene:
    """What a test or a history works with. It waits only for what the API server reports."""

    def __init__(self, api: Api, proxy: Proxy, world: World, namespaces: list[str]) -> None:
        self.api = api
        self.proxy = proxy
        self.world = world
        self.namespaces = namespaces
        self.namespace = namespaces[0]
        self.operator: Process | Program | None = None
        self.second_operator: Process | None = None
        self._refused: dict[tuple[str, str, str], Rule] = {}

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        access: Access,
        namespace: str,
        choices: random.Random | None = None,
        labels: Mapping[str, str] | None = None,
        others: tuple[str, ...] = (),
        *,
        is_deleted: bool = True,
    ) -> AsyncIterator[Self]:
        """Create a namespace without an operator, and delete it at the end; the operator also serves `others`."""
        choices = choices or random.Random(0)
        async with AsyncExitStack() as stack:
            stack.callback(_keep_what_is_left)
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="scene-")))
            api = await stack.enter_async_context(Api.connect(access))
            proxy = await stack.enter_async_context(Proxy.run(access, Faults(random.Random(choices.random()))))
            use_api_server(await proxy.listen(OPERATOR), access.tokens["operator"], directory)
            await api.create_namespace(namespace, labels)
            if is_deleted:
                stack.push_async_callback(api.delete_namespace, namespace)
            world = await stack.enter_async_context(World.run(api, namespace, proxy, random.Random(choices.random())))
            scene = cls(api, proxy, world, [namespace, *others])
            stack.push_async_callback(scene.stop_operator)
            stack.push_async_callback(scene.stop_second_operator)
            yield scene

    def start_operator(self) -> None:
        """Start the operator, or restart it."""
        assert self.operator is None or not self.operator.is_alive
        self.operator = operator(self.namespaces).start()

    def kill_operator(self) -> None:
        """Kill the operator at any await, as SIGKILL would."""
        if self.operator is not None and self.operator.is_alive:
            self.operator.kill()
        self.proxy.cut_off(OPERATOR)

    async def stop_operator(self) -> None:
        """End the operator as SIGTERM would."""
        if self.operator is not None:
            await self.operator.stop()
        self.proxy.cut_off(OPERATOR)

    def start_second_operator(self) -> None:
        """Start a second operator for the same namespaces."""
        self.second_operator = operator(self.namespaces).start()

    async def stop_second_operator(self) -> None:
        """End the second operator, if there is one."""
        if self.second_operator is not None:
            await self.second_operator.stop()
            self.second_operator = None

    def refuse_statuses(self, kind: Kind, name: str, who: str) -> bool:
        """Reject what a client writes into an object's status, or accept it again; return whether it is rejected."""
        key = kind.plural, name, who
        if (rule := self._refused.pop(key, None)) is not None:
            rule.times = 0
            return False

        def matches(request: Request) -> bool:
            is_status = (request.plural, request.name, request.subresource) == (kind.plural, name, "status")
            return is_status and request.namespace == self.namespace and request.client.startswith(who)

        self._refused[key] = self.proxy.rule(Rule(matches, WEBHOOK, times=1_000_000))
        return True

    async def end_oddities(self) -> None:
        """Undo everything that a history has done to this scene."""
        for rule in self._refused.values():
            rule.times = 0
        self._refused.clear()
        self.world.frozen.clear()
        self.world.lying.clear()
        for gcs in self.world.gcs.values():
            gcs.unfit.clear()
        await self.stop_second_operator()
        await self.world.delete_copies()

    # What a user does.

    async def pool(self, name: str, **spec: Any) -> Manifest:
        """Create a pool."""
        return await self.api.create(pool(self.namespace, name, **spec))

    async def group(self, name: str, **spec: Any) -> Manifest:
        """Create a group."""
        return await self.api.create(group(self.namespace, name, **spec))

    async def code(self, name: str, **files: str) -> Manifest:
        """Create or replace a ConfigMap with code."""
        data = {f"{module}.py": text for module, text in files.items()}
        metadata = {"name": name, "namespace": self.namespace}
        return await self.api.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})

    async def edit(self, kind: Kind, name: str, spec: Mapping[str, Any]) -> Manifest:
        """Merge fields into an object's spec."""
        return await self.api.merge(kind, self.namespace, name, {"spec": spec})

    async def annotate(self, kind: Kind, name: str, annotation: str, value: str) -> Manifest:
        """Set an annotation of an object."""
        return await self.api.merge(kind, self.namespace, name, {"metadata": {"annotations": {annotation: value}}})

    async def delete(self, kind: Kind, name: str) -> None:
        """Delete an object."""
        await self.api.delete(kind, self.namespace, name)

    # What a user sees.

    async def get(self, kind: Kind, name: str) -> Manifest:
        """Return an object, which must exist."""
        found = await self.api.get(kind, self.namespace, name)
        assert found is not None, f"no {kind.kind} {name}"
        return found

    async def condition(self, kind: Kind, name: str, type_: str = "Ready") -> Manifest:
        """Return a condition; it is empty while it does not exist."""
        return condition(await self.get(kind, name), type_)

    async def ready(self, kind: Kind, name: str, seconds: float = 30.0) -> Manifest:
        """Wait until the object is Ready; return it."""
        return await self.until(kind, name, "Ready", "True", seconds=seconds)

    async def until(
        self, kind: Kind, name: str, type_: str, status: str, reason: str | None = None, seconds: float = 30.0
    ) -> Manifest:
        """Wait until the object has a condition with this status (and reason), however briefly; return it."""
        last: Manifest = {}
        try:
            async with asyncio.timeout(seconds):
                async for event, last in self.api.watch(kind, self.namespace, name):
                    found = condition(last, type_)
                    is_so = found.get("status") == status and reason in (None, found.get("reason"))
                    if is_so and event != "DELETED":
                        return last
        except TimeoutError:
            what = f"{kind.kind} {name}: {type_}={status} {reason or ''}"
            now = await self.api.get(kind, self.namespace, name)
            says = "finds none" if now is None else f"says {now.get('status')}"
            writes = [f"{time.monotonic() - w.at:.1f} s ago: {w.request} {w.status}" for w in self.proxy.writes[-8:]]
            shown = f"last writes {writes}; the watch's last is {last.get('status')}, and a GET now {says}"
            raise AssertionError(f"not within {seconds} s: {what}; {shown}") from None
        raise AssertionError("a watch never ends")

    async def rest(self, quiet: float, within: float = 20.0, besides: str | None = None) -> None:
        """Wait until nothing was written for `quiet` seconds, except in the namespace `besides`."""
        deadline = time.monotonic() + within
        while True:
            began = time.monotonic()
            await asyncio.sleep(quiet)
            writes = [write for write in self.proxy.writes_since(began) if write.request.namespace != besides]
            if not writes:
                return
            if time.monotonic() > deadline:
                raise AssertionError(f"it writes at rest: {[f'{w.request} {w.status}' for w in writes][:8]}")


def _keep_what_is_left() -> None:
    """Leave what was killed, and all modules, out of later garbage collections, each of which stops all threads."""
    gc.collect()
    gc.freeze()


def condition(body: Manifest, type_: str = "Ready") -> Manifest:
    """Return a condition of an object; it is empty while it does not exist."""
    conditions = body.get("status", {}).get("conditions", ())
    return next((each for each in conditions if each["type"] == type_), {})


def read(kind: Kind, body: Manifest) -> ResourcePool | WorkerGroup:
    """Return the object as the API package reads it."""
    return (ResourcePool if kind is RESOURCE_POOL else WorkerGroup).model_validate(body)


def pool(namespace: str, name: str, **spec: Any) -> Manifest:
    """Return a pool on CPUs: by default, one node with two processes."""
    return _object(RESOURCE_POOL, namespace, name, {"processesPerNode": 2, "accelerator": {"vendor": "none"}} | spec)


def group(namespace: str, name: str, **spec: Any) -> Manifest:
    """Return a group: by default, on the pool of its name."""
    ranks = {} if "roles" in spec else {"worker": {"class": "train.Trainer"}}
    return _object(WORKER_GROUP, namespace, name, ranks | spec)


def _object(kind: Kind, namespace: str, name: str, spec: Mapping[str, Any]) -> Manifest:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": dict(spec)}
