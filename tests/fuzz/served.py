"""Odd objects on a real API server, next to a healthy pool and group that they must not affect."""

import asyncio
import contextlib
import random
import re
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from tests.fuzz import objects
from tests.fuzz.case import Outcome, Wrong, choices_of
from tests.fuzz.objects import OddObject
from tests.simulation.api import ApiError, path_of
from tests.simulation.control_plane import Access
from tests.simulation.monitor import SLACK_SECONDS
from tests.simulation.program import Program
from tests.simulation.scene import OPERATOR, Scene
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP, Kind
from workergroups_api.names import RESTARTED_AT_ANNOTATION

HEALTHY = "healthy"
BOTH = (RESOURCE_POOL, WORKER_GROUP)
# How soon each object has a condition, or a change of a healthy one shows; a batch arrives all at once.
BOUND_SECONDS = 5.0
SECONDS_FOR_EACH = 0.2
# The API server takes ten seconds of a core to write an object with 9,000 levels, and gives up on a busy machine. So
# nobody can write the status of an object that took it longer than this; the others must be served.
SLOWEST_WRITE_SECONDS = 3.0
READY_SECONDS = 120.0
# Less than the chart's limit, which is 384 MiB.
MEMORY_MIB = 256.0
LOOK_SECONDS = 0.1
# The API server's messages on requests as a whole, which name no field.
_OF_THE_WHOLE = re.compile(
    r"entity too large|request is too large|larger than max|exceeded max depth|too deep|out of range"
)
# What the operator may delete says one of these: a group whose run has ended, or a pool that nobody uses.
_MAY_EXPIRE = re.compile(rb'"ttlSecondsAfterFinished"|"action": ?"Delete"')
_NAMES_A_FIELD = re.compile(r"\b(spec|metadata|status|apiVersion|kind)\b")


@dataclass
class _Served:
    """An odd object that the API server accepted."""

    seed: int
    odd: OddObject


async def play(access: Access, seeds: Sequence[int], kind: str) -> Outcome:
    """Play a batch of cases in one namespace: of odd objects, or of several at their maxima."""
    outcome = Outcome(kind, seeds)
    namespace = f"f{seeds[0]}-{int(time.time() * 1000) % 10**8}"
    with tempfile.TemporaryDirectory(prefix="fuzz-") as directory:
        async with Scene.open(access, namespace, random.Random(seeds[0])) as scene:
            program = Program([namespace], Path(directory) / "operator.log")
            scene.operator = program.start()
            await _Batch(scene, program, outcome).play(seeds)
    return outcome


class _Batch:
    def __init__(self, scene: Scene, program: Program, outcome: Outcome) -> None:
        self.scene = scene
        self.program = program
        self.outcome = outcome
        self.bound = BOUND_SECONDS + SLACK_SECONDS

    async def play(self, seeds: Sequence[int]) -> None:
        self.bound += SECONDS_FOR_EACH * len(seeds)
        try:
            await self._begin(seeds)
            async with self._neighbours_watched():
                served = [each for seed in seeds for each in await self._create(seed)]
                await self._all_have_a_condition(served)
                await self._an_edit_is_seen()
            await self._a_dead_rank_is_seen()
            if self.program.failure:
                raise Wrong(str(self.program.failure))
            if forbidden := self.scene.proxy.forbidden:
                raise Wrong(f"rights are missing: {forbidden[:3]}")
            if (peak := self.program.peak_mib()) > MEMORY_MIB:
                raise Wrong(f"the operator used {peak:.0f} MiB, more than {MEMORY_MIB:.0f} MiB")
            self.outcome.note(f"peak below {(int(peak) // 32 + 1) * 32} MiB")
        except (Wrong, AssertionError) as error:
            self.outcome.failures[seeds[0]] = f"{error}\n{self.program.last_lines()}"

    async def _begin(self, seeds: Sequence[int]) -> None:
        await self.scene.pool(HEALTHY, progressDeadlineSeconds=600)
        await self.scene.group(HEALTHY)
        await self.scene.ready(WORKER_GROUP, HEALTHY, seconds=READY_SECONDS)
        await self.scene.ready(RESOURCE_POOL, HEALTHY, seconds=READY_SECONDS)
        for pod in objects.pods_like_ours(choices_of(seeds[0], "pods"), self.scene.namespace, HEALTHY):
            await self.scene.api.create(pod)

    async def _create(self, seed: int) -> list[_Served]:
        draw = objects.largest if self.outcome.kind == "largest" else objects.drawn
        drawn = draw(choices_of(seed, "object"), self.scene.namespace, f"o{seed}", HEALTHY)
        if len(drawn) > 1:
            self.outcome.note("objects at their maxima")
            self.bound += SECONDS_FOR_EACH * (len(drawn) - 1)
        return [_Served(seed, odd) for odd in drawn if await self._is_taken(seed, odd)]

    async def _is_taken(self, seed: int, odd: OddObject) -> bool:
        began = time.monotonic()
        try:
            await self.scene.api.send("POST", path_of(odd.kind, self.scene.namespace), odd.body)
        except ApiError as error:
            self._refused(seed, error)
            return False
        if time.monotonic() - began > SLOWEST_WRITE_SECONDS:
            self.outcome.note(f"{odd.kind.kind} too slow to write")
            return False
        self.outcome.note(f"{odd.kind.kind} taken")
        await self._write_status(seed, odd)
        return True

    async def _write_status(self, seed: int, odd: OddObject) -> None:
        if odd.status is None:
            return
        path = path_of(odd.kind, self.scene.namespace, odd.name, "status")
        try:
            await self.scene.api.send("PATCH", path, odd.status, "application/merge-patch+json")
        except ApiError as error:
            self._refused(seed, error)

    def _refused(self, seed: int, error: ApiError) -> None:
        if error.status == HTTPStatus.GATEWAY_TIMEOUT:
            self.outcome.note("too slow to write")
            return
        self.outcome.note(f"rejected with {error.status}")
        if not _NAMES_A_FIELD.search(error.message) and not _OF_THE_WHOLE.search(error.message):
            self.outcome.failures[seed] = f"refused, and no field is named: {error}"

    async def _all_have_a_condition(self, served: Sequence[_Served]) -> None:
        waiting = {(each.odd.kind, each.odd.name): each.seed for each in served}
        may_expire = {each.seed for each in served if _MAY_EXPIRE.search(each.odd.body)}
        until = time.monotonic() + self.bound
        while waiting and time.monotonic() < until:
            for expired in self._deleted() & set(waiting):
                if waiting[expired] in may_expire:
                    self.outcome.note(f"{expired[0].kind} expired")
                    del waiting[expired]
            for kind in BOTH:
                for name, row in (await self.scene.api.table(kind, self.scene.namespace)).items():
                    if row["Ready"] and row["Reason"]:
                        seed = waiting.pop((kind, name), None)
                        if seed is not None:
                            self.outcome.note(f"{kind.kind} {row['Ready']} {row['Reason']}")
            await asyncio.sleep(LOOK_SECONDS)
        statuses = [
            write
            for write in self.scene.proxy.writes_since(until - self.bound)
            if write.request.subresource == "status" and write.request.client == OPERATOR
        ]
        said = f"after {self.bound:.1f} s, in which the operator wrote {len(statuses)} statuses"
        for (kind, name), seed in waiting.items():
            own = [write.status for write in statuses if write.request.name == name]
            why = f"{kind.kind} {name} has no condition {said}, its own with {own}"
            self.outcome.failures[seed] = f"{why}\n{self.program.last_lines()}"

    def _deleted(self) -> set[tuple[Kind, str]]:
        """Return the objects that the operator deleted, which may be before anybody looked."""
        deleted = {
            (write.request.plural, write.request.name)
            for write in self.scene.proxy.writes
            if write.request.method == "DELETE" and write.request.client == OPERATOR and write.status == HTTPStatus.OK
        }
        return {(kind, name) for kind in BOTH for plural, name in deleted if plural == kind.plural and name}

    @asynccontextmanager
    async def _neighbours_watched(self) -> AsyncIterator[None]:
        """Fail if a healthy object is not Ready at any time."""
        watching = asyncio.create_task(self._watch_neighbours())
        try:
            yield
            if watching.done():
                watching.result()
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError, Wrong):
                await watching

    async def _watch_neighbours(self) -> None:
        while True:
            for kind in BOTH:
                ready = await self.scene.condition(kind, HEALTHY)
                if ready.get("status") != "True":
                    raise Wrong(f"the healthy {kind.kind} turned: {ready}")
            await asyncio.sleep(LOOK_SECONDS)

    async def _an_edit_is_seen(self) -> None:
        for kind in BOTH:
            edited = await self.scene.edit(kind, HEALTHY, {"progressDeadlineSeconds": 601})
            began = time.monotonic()
            while (await self.scene.get(kind, HEALTHY))["status"].get("observedGeneration") != edited["metadata"][
                "generation"
            ]:
                if time.monotonic() - began > self.bound:
                    raise Wrong(f"an edit of the healthy {kind.kind} is not seen after {self.bound:.1f} s")
                await asyncio.sleep(LOOK_SECONDS)

    async def _a_dead_rank_is_seen(self) -> None:
        """Check that the death of a rank, and a restart by annotation, lead to new ranks within the bound."""
        uid = (await self.scene.get(WORKER_GROUP, HEALTHY))["metadata"]["uid"]
        rank = next(rank for rank in self.scene.world.live_ranks(HEALTHY) if rank.name.uid == uid)
        self.scene.world.kill_rank(HEALTHY, rank)
        await self._ranks_are_replaced(rank.name.incarnation)
        await self.scene.annotate(WORKER_GROUP, HEALTHY, RESTARTED_AT_ANNOTATION, "now")
        await self._ranks_are_replaced(rank.name.incarnation + 1)

    async def _ranks_are_replaced(self, incarnation: int) -> None:
        began = time.monotonic()
        while (await self.scene.get(WORKER_GROUP, HEALTHY))["status"].get("incarnation", 0) <= incarnation:
            if time.monotonic() - began > self.bound:
                raise Wrong(f"the ranks of incarnation {incarnation} are not replaced after {self.bound:.1f} s")
            await asyncio.sleep(LOOK_SECONDS)
        await self.scene.ready(WORKER_GROUP, HEALTHY, seconds=self.bound)
