"""Hand the plan, and what its groups are launched from, to the observer whenever they change."""

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable
from typing import Any

from workergroups_agent.exchange import Exchange, PreparedLaunch
from workergroups_agent.reporter.follow import follow
from workergroups_agent.reporter.known import CodeFiles, Found, FoundCode, Known, Unreadable
from workergroups_agent.reporter.prepare import Missing, prepare, read_launch, without
from workergroups_agent.reporter.timings import ReporterTimings
from workergroups_api.launch import code_digest
from workergroups_api.manifest import CONFIG_MAP, WORKER_GROUP, Kind
from workergroups_api.names import PLAN_KEY, plan_name
from workergroups_api.plan import ClusterPlan, PlannedGroup
from workergroups_kube import Kube

LOGGER = logging.getLogger(__name__)


class OrderKeeper:
    """Follows the plan, its groups and their code; the only writer of `known`."""

    def __init__(
        self, client: Kube, namespace: str, cluster: str, exchange: Exchange, known: Known, timings: ReporterTimings
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._cluster = cluster
        self._exchange = exchange
        self._known = known
        self._timings = timings
        self._changed = asyncio.Event()
        self._followers: dict[tuple[Kind, str], asyncio.Task[None]] = {}
        self._written_plan: ClusterPlan | None = None
        self._written: dict[str, PreparedLaunch] = {}

    async def run(self) -> None:
        """Follow and hand over. Never returns."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow(CONFIG_MAP, plan_name(self._cluster), self._take_plan))
            while True:
                self._changed.clear()
                self._follow_named(tasks)
                all_written = self._hand_over()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(None if all_written else self._timings.orders_again):
                        await self._changed.wait()

    async def _follow(self, kind: Kind, name: str, tell: Callable[[Found], None]) -> None:
        await follow(self._client, kind, self._namespace, name, tell, self._timings)

    def _take_plan(self, found: Found) -> None:
        """Take a new plan. If it is deleted or cannot be read, the previous plan stays in force."""
        if found is None or isinstance(found, Unreadable):
            return
        try:
            plan = ClusterPlan.model_validate(json.loads(found["data"][PLAN_KEY]))
        except (KeyError, TypeError, ValueError) as error:
            LOGGER.warning("cannot read the plan: %s", type(error).__name__)
            return
        if plan != self._known.plan:
            self._known.plan = plan
            self._known.version += 1
            self._changed.set()

    def _take_group(self, name: str, found: Found) -> None:
        before = self._known.groups.get(name)
        self._known.groups[name] = found
        self._known.version += 1
        if _what_is_launched(before) != _what_is_launched(found):
            self._changed.set()

    def _take_code(self, name: str, found: Found) -> None:
        if isinstance(found, dict):
            files = dict(found.get("data") or {})
            self._known.code[name] = CodeFiles(files, code_digest(files))
        else:
            self._known.code[name] = found
        self._known.version += 1
        self._changed.set()

    def _follow_named(self, tasks: asyncio.TaskGroup) -> None:
        """Follow what the plan and its groups name now, and stop following anything else."""
        groups = {group.name for group in self._known.plan.groups} if self._known.plan else set()
        self._follow_only(tasks, WORKER_GROUP, groups, self._known.groups, self._take_group)
        self._follow_only(tasks, CONFIG_MAP, self._code_names(), self._known.code, self._take_code)

    def _follow_only(
        self,
        tasks: asyncio.TaskGroup,
        kind: Kind,
        names: set[str],
        known: dict[str, Found] | dict[str, FoundCode],
        take: Callable[[str, Found], None],
    ) -> None:
        for key in [key for key in self._followers if key[0] == kind and key[1] not in names]:
            self._followers.pop(key).cancel()
            known.pop(key[1], None)
        for name in names - {name for of_kind, name in self._followers if of_kind == kind}:

            def tell(found: Found, name: str = name) -> None:
                if (kind, name) in self._followers:
                    take(name, found)

            self._followers[kind, name] = tasks.create_task(self._follow(kind, name, tell))

    def _code_names(self) -> set[str]:
        names = set()
        for planned in self._known.plan.groups if self._known.plan else ():
            try:
                name = read_launch(planned, self._known.groups.get(planned.name)).config_map
            except Missing:
                continue
            if name is not None:
                names.add(name)
        return names

    def _hand_over(self) -> bool:
        """Write the files that have changed, launches first; return whether all could be written."""
        plan = self._known.plan
        if plan is None:
            return True
        results = [self._hand_over_launch(group.uid, self._prepare(group)) for group in plan.groups]
        uids = {planned.uid for planned in plan.groups}
        self._written = {uid: written for uid, written in self._written.items() if uid in uids}
        try:
            self._exchange.remove_launches_but(uids)
            if plan != self._written_plan:
                self._exchange.write_plan(plan)
                self._written_plan = plan
        except OSError as error:
            LOGGER.warning("cannot hand over the plan: %s", error)
            self._tell_trouble(f"the plan cannot be handed over to it: {error.strerror}")
            return False
        self._tell_trouble(None)
        return all(results)

    def _prepare(self, planned: PlannedGroup) -> PreparedLaunch:
        try:
            return prepare(planned, self._known.groups.get(planned.name), self._known.code)
        except Exception as error:  # an odd group must not keep the others from being launched
            LOGGER.exception("cannot prepare the launch of %s", planned.name)
            return without(planned.uid, f"the agent cannot handle this group: {type(error).__name__}: change its spec")

    def _tell_trouble(self, trouble: str | None) -> None:
        if trouble != self._known.trouble:
            self._known.trouble = trouble
            self._known.version += 1

    def _hand_over_launch(self, uid: str, prepared: PreparedLaunch) -> bool:
        if self._written.get(uid) == prepared:
            return True
        try:
            self._exchange.write_launch(prepared)
        except (OSError, ValueError, RecursionError) as error:
            why = f"the agent cannot hand the launch to Ray: {type(error).__name__}: {error}"
            LOGGER.warning("cannot write the launch of %s: %s", uid, type(error).__name__)
            self._written.pop(uid, None)
            return self._hand_over_launch(uid, without(uid, why)) if prepared.launch else False
        self._written[uid] = prepared
        return True


def _what_is_launched(found: Found) -> Any:
    """Return the parts of a WorkerGroup that its launch is made from; its status changes more often."""
    if not isinstance(found, dict):
        return found
    metadata = found["metadata"]
    return metadata.get("uid"), metadata.get("annotations"), found.get("spec")
