"""Watch the API server, bypassing the proxy, and report statuses that are wrong for longer than their bound."""

import asyncio
import re
import time
from dataclasses import dataclass, field

from tests.simulation.api import Api
from tests.simulation.neighbours import PREFIX
from tests.simulation.pace import PACE
from tests.simulation.scene import Scene, read
from tests.simulation.truth import condition_of, contradiction, old_pods, outdated, suspended_wrongly
from workergroups_api.conditions import Condition
from workergroups_api.manifest import CONFIG_MAP, RESOURCE_POOL, WORKER_GROUP, Kind
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import Component, ConditionType
from workergroups_api.worker_group import WorkerGroup

EVERY_SECONDS = 0.1
# Added to each bound, for a busy machine.
SLACK_SECONDS = 3.0
# Until a starting operator has observed everything; until all watches run again after faults.
START_SECONDS = 5.0
AFTER_FAULTS_SECONDS = 6.0
BOUND_SECONDS = 1.0
# While the agent is away, nobody notices a change at once.
AWAY_BOUND_SECONDS = 5.0
FROZEN_BOUND_SECONDS = 15.0 / PACE
UP_TO_DATE_BOUND_SECONDS = 3.0


@dataclass
class Turn:
    """Ready of an object changed."""

    at: float
    kind: str
    name: str
    before: str
    after: str
    reason: str


@dataclass
class Monitor:
    """The pools and groups of a history, and what was wrong with their statuses."""

    scene: Scene
    objects: dict[tuple[str, str], ResourcePool | WorkerGroup] = field(default_factory=dict)
    code: dict[str, dict[str, str]] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    # When the operator was last started.
    operator_started: float = 0.0
    # The longest time for which each kind of status was wrong.
    longest: dict[str, float] = field(default_factory=dict)
    _since: dict[tuple[str, str, str], float] = field(default_factory=dict)
    _said: set[tuple[str, str, str]] = field(default_factory=set)

    async def run(self) -> None:
        """Watch and check. Never returns."""
        async with asyncio.TaskGroup() as tasks:
            for kind in (RESOURCE_POOL, WORKER_GROUP):
                tasks.create_task(self._follow(self.scene.api, kind))
            tasks.create_task(self._follow_code(self.scene.api))
            while True:
                began = time.monotonic()
                await asyncio.sleep(EVERY_SECONDS)
                self.scene.proxy.overload.note(time.monotonic() - began, EVERY_SECONDS)
                self._look()

    async def _follow(self, api: Api, kind: Kind) -> None:
        async for type_, body in api.watch(kind, self.scene.namespace):
            key = kind.kind, body["metadata"]["name"]
            if key[1].startswith(PREFIX):
                continue  # Strangers write its status.
            before = self.objects.get(key)
            if type_ == "DELETED":
                self.objects.pop(key, None)
                continue
            self.objects[key] = subject = read(kind, body)
            if before is not None and before.uid == subject.uid:
                self._note_turn(key, condition_of(before), condition_of(subject))

    def _note_turn(self, key: tuple[str, str], before: Condition | None, after: Condition | None) -> None:
        was, is_now = before and before.status, after and after.status
        if was != is_now:
            reason = f"{after.reason}: {after.message}" if after else ""
            self.turns.append(Turn(time.monotonic(), *key, str(was), str(is_now), reason[:300]))

    async def _follow_code(self, api: Api) -> None:
        async for type_, body in api.watch(CONFIG_MAP, self.scene.namespace):
            if type_ == "DELETED":
                self.code.pop(body["metadata"]["name"], None)
            else:
                self.code[body["metadata"]["name"]] = body.get("data") or {}

    def cluster_of(self, subject: ResourcePool | WorkerGroup) -> str | None:
        """Return the cluster of a pool, or of a group's first pool."""
        if isinstance(subject, ResourcePool):
            return subject.cluster
        pool = self.objects.get((RESOURCE_POOL.kind, subject.pools[0].name))
        return pool.cluster if isinstance(pool, ResourcePool) else None

    def code_of(self, group: WorkerGroup) -> dict[str, str] | None:
        """Return the files of the ConfigMap that a group names."""
        code = group.spec.code
        return self.code.get(code.config_map.name) if code and code.config_map else None

    def _look(self) -> None:
        now = time.monotonic()
        seen = set()
        for (kind, name), subject in list(self.objects.items()):
            cluster = self.cluster_of(subject)
            wrong: dict[str, str | None] = {ConditionType.READY: contradiction(self.scene.world, subject, cluster)}
            wrong[ConditionType.SUSPENDED] = suspended_wrongly(self.scene.world, subject, cluster)
            if isinstance(subject, WorkerGroup):
                code = self.code_of(subject)
                wrong[ConditionType.UP_TO_DATE] = outdated(self.scene.world, subject, cluster, code)
            else:
                wrong[ConditionType.UP_TO_DATE] = old_pods(self.scene.world, subject)
            for type_, why in wrong.items():
                if why is not None:
                    key = kind, name, type_
                    seen.add(key)
                    self._judge(key, why, now, cluster)
        for key in self._since.keys() - seen:
            del self._since[key]
            self._said.discard(key)

    def _judge(self, key: tuple[str, str, str], why: str, now: float, cluster: str | None) -> None:
        """Note a status that is wrong for too long, counted from when nothing prevented a correction."""
        since = self._since.setdefault(key, now)
        quiet = max(self.scene.proxy.last_fault, self.scene.proxy.overload.last)
        since = max(
            since,
            self.operator_started + (START_SECONDS if self.operator_started > since - START_SECONDS else 0.0),
            quiet + (AFTER_FAULTS_SECONDS if quiet > since - AFTER_FAULTS_SECONDS else 0.0),
        )
        lasted = now - since
        bound = self._bound(key[2], cluster)
        kind = _kind_of(key[2], why)
        self.longest[kind] = max(self.longest.get(kind, 0.0), lasted)
        if lasted > bound + SLACK_SECONDS and key not in self._said:
            self._said.add(key)
            self.violations.append(f"{key[0]} {key[1]} says {key[2]}=True for {lasted:.1f} s (bound {bound}): {why}")

    def _bound(self, type_: str, cluster: str | None) -> float:
        if type_ == ConditionType.UP_TO_DATE:
            return UP_TO_DATE_BOUND_SECONDS
        if cluster in self.scene.world.frozen:
            return FROZEN_BOUND_SECONDS
        return BOUND_SECONDS if cluster and self.scene.world.pods(cluster, Component.AGENT) else AWAY_BOUND_SECONDS


def _kind_of(type_: str, why: str) -> str:
    """Return what is wrong without names, numbers and lists: alike for all objects, so that a summary stays short."""
    words = re.sub(r"\[[^]]*\]", "", why).split()
    return f"{type_}: {' '.join(word for word in words if not re.search(r'[0-9=/]', word))}"[:70]
