"""One history: its seed decides what happens, and its end is judged."""

import asyncio
import json
import logging
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.simulation import oracles
from tests.simulation.actions import Actions
from tests.simulation.api import ApiError
from tests.simulation.control_plane import Access
from tests.simulation.diary import Diary
from tests.simulation.monitor import Monitor, Turn
from tests.simulation.neighbours import Neighbours
from tests.simulation.scene import OPERATOR, Scene, condition, group, pool
from tests.simulation.story import FAILING_CLASS, FAILURE, Story
from workergroups_api.manifest import LEASE, RAY_CLUSTER, RESOURCE_POOL, WORKER_GROUP
from workergroups_api.names import RESTARTED_AT_ANNOTATION

# KubeRay waits 30 s for a pod that was gone before KubeRay saw it, and looks again within another 10 s.
# Until then it neither creates nor deletes pods of that group.
CONVERGE_SECONDS = 60.0
FRESH_SECONDS = 45.0
# On a busy machine, a watch of the garbage collector breaks now and then; it retries after up to 30 s.
EMPTY_SECONDS = 60.0
REST_SECONDS = 1.0
FORGIVABLE = (404, 409)
LOGGER = logging.getLogger(__name__)


class Violation(Exception):
    """The history ended in a state that is wrong."""


@dataclass
class History:
    """A seed, the outcome of its history, and how long it took."""

    seed: int
    log: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    faults: dict[str, int] = field(default_factory=dict)
    # How often the operator ended without being told to, by reason.
    ends: dict[str, int] = field(default_factory=dict)
    longest: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    # CPU seconds: what a history costs if nothing else runs.
    processor_seconds: float = 0.0
    # For how many seconds the machine was too busy for bounds in seconds.
    overloads: int = 0


@dataclass(frozen=True)
class Course:
    """The parts of a history."""

    # Whether there are actions other than those of users.
    has_faults: bool
    # The fewest and the most actions.
    actions: tuple[int, int]
    # In which part of the histories strangers come.
    strangers: float = 0.0


EVERYTHING = Course(has_faults=True, actions=(10, 30))
EDITS = Course(has_faults=False, actions=(20, 50))


async def run(access: Access, seed: int, course: Course = EVERYTHING) -> History:
    """Play the history of a seed."""
    history = History(seed)
    diary = Diary()
    diary.keep()
    began = time.monotonic()
    namespace = f"s{seed}-{int(time.time() * 1000) % 10**8}"
    fresh = f"{namespace}-fresh"
    choices, is_empty = random.Random(f"scene {seed}"), False
    async with Scene.open(access, namespace, choices, others=(fresh,), is_deleted=False) as scene:
        await scene.api.create_namespace(fresh)
        try:
            await _Play(scene, history, course, fresh).play()
            is_empty = True
        except Violation as violation:
            history.violations.append(str(violation))
            history.violations += scene.world.overview()
            for kind in (LEASE, RAY_CLUSTER):
                history.violations += [json.dumps(body) for body in await scene.api.list(kind, namespace)]
            history.violations += diary.lines
        finally:
            await scene.stop_operator()
            # Deleting a namespace takes 80 requests, so an empty one stays until the control plane ends.
            for each in () if is_empty else scene.namespaces:
                await scene.api.delete_namespace(each)
    history.seconds = time.monotonic() - began
    history.processor_seconds = time.process_time()
    return history


class _Play:
    def __init__(self, scene: Scene, history: History, course: Course, fresh: str) -> None:
        self.scene = scene
        self.history = history
        self.course = course
        self.fresh = fresh
        self.choices = random.Random(f"{history.seed} story")
        self.story = Story.draw(self.choices)
        self.actions = Actions(scene, self.story, self.choices, self.restart_operator)
        self.neighbours = Neighbours(scene, self.story, fresh, history.seed, course.strangers)
        self.monitor = Monitor(scene)
        self.began = time.monotonic()

    def _use(self, choices: random.Random) -> None:
        """Give each action its own generator, so that no choice depends on how many other actions made."""
        self.choices = choices
        self.actions.use(choices)

    def say(self, text: str) -> None:
        self.history.log.append(f"{time.monotonic() - self.began:6.2f} {text}")
        LOGGER.info("%s", text)

    async def play(self) -> None:
        self.scene.world.failing[FAILING_CLASS] = FAILURE
        self.scene.start_operator()
        async with self._monitored():
            await self._begin()
            await self._act()
            await self._end_faults()
            await self._restart_pools()
            await self._converge()
            await self._end_runs()
            await self._agree_on_sizes()
            await self._compare_with_fresh()
            await self._do_nothing()
            await self._delete_all()
        # Faults delay the agents' Roles, and these go with the pools.
        lacking = [each for each in self.scene.proxy.forbidden if each.startswith(OPERATOR)]
        if wrong := [*self.monitor.violations, *lacking, *self.scene.world.rude]:
            raise Violation("; ".join(wrong))

    @asynccontextmanager
    async def _monitored(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self.monitor.run()), asyncio.create_task(self._keep_operator())]
        try:
            yield
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.history.faults = self.scene.proxy.faults.seen | self.neighbours.seen
            self.history.longest = self.monitor.longest
            self.history.overloads = self.scene.proxy.overload.count

    async def restart_operator(self, kill: bool) -> None:
        if kill:
            self.scene.kill_operator()
        else:
            await self.scene.stop_operator()
        self.monitor.operator_started = time.monotonic()
        self.scene.start_operator()

    async def _keep_operator(self) -> None:
        """Restart the operator as kubelet does: kopf ends, for example, if it cannot read which kinds exist."""
        while True:
            await asyncio.sleep(0.1)
            operator = self.scene.operator
            if operator is not None and not operator.is_alive and operator.failure is not None:
                kind = type(operator.failure).__name__
                self.say(f"the operator ended without being told to: {operator.failure!r}")
                self.history.ends[kind] = self.history.ends.get(kind, 0) + 1
                self.monitor.operator_started = time.monotonic()
                self.scene.start_operator()

    async def _begin(self) -> None:
        """Create most of the story's objects; half of the histories wait until all of them are ready."""
        for create, names in (
            (self.actions.users.create_pool, self.story.clusters),
            (self.actions.users.create_group, self.story.group_pools),
        ):
            for _ in names:
                if self.choices.random() < 0.8:
                    self.say(str(await create()))
        if self.choices.random() < 0.5:
            await self._converge()
            await self._end_runs()

    async def _end_runs(self) -> None:
        """Let half of the methods that groups run return, or raise an exception."""
        while self.choices.random() < 0.5 and (said := await self.actions.end_run()):
            self.say(said)
        await self._converge()

    async def _act(self) -> None:
        """Perform actions of users, of the world and of faults, in an order that the seed decides."""
        for number in range(self.choices.randint(*self.course.actions)):
            self._use(random.Random(f"{self.history.seed} action {number}"))
            if self.course.has_faults:
                self._change_weather()
                if said := await self.neighbours.act():
                    self.say(said)
            action = self.actions.drawn(by_users_only=not self.course.has_faults)
            try:
                said = await action()
            except ApiError as error:
                if error.status not in FORGIVABLE:
                    raise
                said = f"{action.__name__}: {error}"
            if said:
                self.say(said)
            await asyncio.sleep(self.choices.choice((0.0, 0.01, 0.05, 0.1, 0.2, 0.4)))

    def _change_weather(self) -> None:
        chance = self.choices.random()
        if chance < 0.12:
            weather = {
                "requests": self.choices.choice((0.05, 0.2, 0.5)),
                "events": self.choices.choice((0.0, 0.1, 0.3)),
            }
            self.scene.proxy.begin_faults(**weather)
            self.say(f"faults: {weather}")
        elif chance < 0.25 and self.scene.proxy.is_faulty:
            self.scene.proxy.end_faults()
            self.say("no faults")

    async def _end_faults(self) -> None:
        self.scene.proxy.end_faults()
        await self.neighbours.leave()
        await self.scene.end_oddities()
        self.say("faults end for good")

    async def _restart_pools(self) -> None:
        """Restart all pools, so that what runs is what is written."""
        for name in self.story.pools:
            await self.scene.annotate(RESOURCE_POOL, name, RESTARTED_AT_ANNOTATION, "the end")
        self.say("restart all pools")

    async def _converge(self) -> None:
        """Wait until all statuses are true, and everything that can be ready is ready."""
        began = time.monotonic()
        while wrong := await oracles.unsettled(self.scene, self.monitor, self.story):
            if time.monotonic() > began + CONVERGE_SECONDS:
                raise Violation(f"not settled after {CONVERGE_SECONDS} s: {'; '.join(wrong)}")
            await _before_next_look(began)
        self.say(f"settled after {time.monotonic() - began:.1f} s")

    async def _agree_on_sizes(self) -> None:
        """Let users end what keeps pools and groups from the sizes of their specs."""
        while done := await self.actions.users.agree_on_sizes():
            for said in done:
                self.say(said)
            await self._converge()

    async def _compare_with_fresh(self) -> None:
        """Check that the same specs in another namespace lead to the same objects."""
        for name, plot in self.story.pools.items():
            await self.scene.api.create(pool(self.fresh, name, **plot.spec))
        for name, written in self.story.groups.items():
            await self.scene.api.create(group(self.fresh, name, **written.spec))
        broken = [name for name, plot in self.story.pools.items() if plot.broken]
        began = time.monotonic()
        while True:
            stuck = await oracles.stuck_groups(self.scene.api, self.scene.namespace)
            mine = await oracles.children(self.scene.api, self.scene.namespace, broken, stuck)
            theirs = await oracles.children(self.scene.api, self.fresh, broken, stuck)
            differences = list(oracles.differences(mine, theirs))
            if not differences:
                break
            if time.monotonic() > began + FRESH_SECONDS:
                says = [condition(body) for body in await self.scene.api.list(RESOURCE_POOL, self.fresh)]
                raise Violation(f"not as a fresh deployment: {'; '.join(differences[:5])}; its pools say {says}")
            await _before_next_look(began)
        for name in self.story.groups:
            await self.scene.api.delete(WORKER_GROUP, self.fresh, name)
        for name in self.story.pools:
            await self.scene.api.delete(RESOURCE_POOL, self.fresh, name)
        self.say("as a fresh deployment")

    async def _do_nothing(self) -> None:
        """Check that nothing is written at rest, and that restarts and edited deadlines change no condition."""
        await self._until_fresh_is_gone()
        while True:
            began = time.monotonic()
            turned = await self._turned_by_nothing()
            if not turned:
                return
            if self.scene.proxy.overload.last < began:
                raise Violation(f"nothing happened, but {turned}")
            self.say("the machine was too busy to judge; trying again")

    async def _turned_by_nothing(self) -> list[Turn]:
        await self._come_to_rest()
        before = len(self.monitor.turns)
        await self.restart_operator(self.choices.random() < 0.5)
        for cluster in sorted(set(self.story.clusters.values())):
            self.scene.world.restart_reporter(cluster)
        for _ in range(2):
            await self.actions.users.edit_deadline()
        self.say("restarted operator and reporters, edited deadlines")
        await self._converge()
        await self._rest("after restarts")
        return self.monitor.turns[before:]

    async def _until_fresh_is_gone(self) -> None:
        began = time.monotonic()
        while await oracles.children(self.scene.api, self.fresh):
            if time.monotonic() > began + EMPTY_SECONDS:
                raise Violation("the fresh deployment does not go")
            await _before_next_look(began)

    async def _come_to_rest(self) -> None:
        """Wait until the history has settled and stays so for some time without a write."""
        while True:
            turns = len(self.monitor.turns)
            await self._converge()
            await self._rest("at rest")
            if len(self.monitor.turns) == turns and not await oracles.unsettled(self.scene, self.monitor, self.story):
                return

    async def _rest(self, when: str) -> None:
        """Wait for some time without a write."""
        try:
            await self.scene.rest(REST_SECONDS, besides=self.fresh)
        except AssertionError as error:
            raise Violation(f"{when}: {error}") from None

    async def _delete_all(self) -> None:
        """Check that no object of ours is left."""
        for name in self.story.groups:
            await self.scene.delete(WORKER_GROUP, name)
        for name in self.story.pools:
            await self.scene.delete(RESOURCE_POOL, name)
        began = time.monotonic()
        while left := await oracles.leftovers(self.scene):
            if time.monotonic() > began + EMPTY_SECONDS:
                raise Violation(f"left over: {left}")
            await _before_next_look(began)
        self.say("all is gone")


async def _before_next_look(began: float) -> None:
    """Wait for a tenth of the time since `began`, and 1 s at most: a look lists everything."""
    await asyncio.sleep(min(max(0.1, (time.monotonic() - began) / 10), 1.0))
