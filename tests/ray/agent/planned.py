"""An observer and an executor whose looks the test takes itself, and builders of what they are told to do."""

import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray

from workergroups.ray_private.gcs import Gcs
from workergroups_agent.exchange import Exchange, PreparedLaunch, Reports
from workergroups_agent.executor.loop import Executor
from workergroups_agent.observer.loop import Observer
from workergroups_api.conditions import Explanation
from workergroups_api.launch import Launch, code_digest, revision
from workergroups_api.plan import ClusterPlan, PlannedBundles, PlannedGroup, PlannedPool, PlannedPreflight
from workergroups_api.run import RunStatus

NODE_GROUP = "actors-12345678"
# Each group is an object of its own: Ray remembers the ranks of those before it.
UIDS = itertools.count()


@dataclass
class Group:
    """A group as the user wrote it, and where the operator has put it."""

    name: str = "trainer"
    uid: str = field(default_factory=lambda: f"uid-{next(UIDS)}")
    incarnation: int = 1
    bundles: tuple[tuple[str, int, int], ...] = (("actors", 0, 2),)
    code: str | None = ""
    more_files: dict[str, str] = field(default_factory=dict)
    session: str | None = None
    launch: Launch = field(default_factory=lambda: launch())
    missing: str | None = None
    environment: str | None = None
    hang_seconds: int | None = None
    is_suspended: bool = False
    births: dict[int, int] | None = None

    def planned(self, session: str) -> PlannedGroup:
        return PlannedGroup(
            name=self.name,
            uid=self.uid,
            incarnation=self.incarnation,
            launch_revision=self.revision,
            session=None if self.is_suspended else self.session or session,
            environment=self.environment,
            hang_seconds=self.hang_seconds,
            run=RunStatus(revision="r") if self.launch.run else None,
            births=self.births,
            bundles=()
            if self.is_suspended
            else tuple(PlannedBundles(pool=name, start=start, count=count) for name, start, count in self.bundles),
        )

    @property
    def files(self) -> dict[str, str] | None:
        return None if self.code is None else {"accumulator.py": self.code or ACCUMULATOR, **self.more_files}

    @property
    def revision(self) -> str | None:
        return revision(self.launch, code_digest(self.files) if self.files else None)

    def prepared(self) -> PreparedLaunch:
        if self.missing:
            return PreparedLaunch(uid=self.uid, missing=Explanation("WaitingForCode", self.missing))
        return PreparedLaunch(uid=self.uid, revision=self.revision, launch=self.launch, files=self.files)


def launch(class_path: str = "accumulator.Accumulator", config_map: str | None = "code", **more: Any) -> Launch:
    return Launch(class_path=class_path, config_map=config_map, **more)


def pool(
    name: str = "actors",
    nodes: int = 2,
    uid: str | None = None,
    devices: int = 1,
    reserves: bool = True,
    settled: int = 0,
    preflight: PlannedPreflight | None = None,
) -> PlannedPool:
    return PlannedPool(
        name=name,
        uid=uid or f"uid-{name}",
        node_group=NODE_GROUP,
        nodes=nodes,
        settled=settled,
        processes_per_node=4 // devices,
        bundle={"CPU": 10.0, "GPU": float(devices)},
        vendor="nvidia",
        devices_per_process=devices,
        max_colocate_count=10,
        reserves=reserves,
        preflight=preflight,
    )


def write_orders(exchange: Exchange, session: str, groups: tuple[Group, ...], pools: tuple[PlannedPool, ...]) -> None:
    """What the reporter would write."""
    for group in groups:
        exchange.write_launch(group.prepared())
    exchange.remove_launches_but({group.uid for group in groups})
    exchange.write_plan(
        ClusterPlan(cluster="actors", pools=pools, groups=tuple(group.planned(session) for group in groups))
    )


def broken(
    directory: Path,
    name: str,
    bundle: int,
    *,
    env: Mapping[str, str] | None = None,
    path: Mapping[str, str] | None = None,
    code: Mapping[str, str] | None = None,
) -> Group:
    """A group of one rank.

    Args:
        directory: Where to write `path`; it replaces `{}` in variables.
        name: Its name.
        bundle: Where its rank runs.
        env: Its variables; by default PYTHONPATH if there is a `path`.
        path: Files of a directory.
        code: Files next to its class.
    """
    for file, text in (path or {}).items():
        (directory / name / file).parent.mkdir(parents=True, exist_ok=True)
        (directory / name / file).write_text(text)
    variables = env or ({"PYTHONPATH": "{}"} if path else {})
    return Group(
        name,
        bundles=(("actors", bundle, 1),),
        launch=launch(env={each: value.replace("{}", str(directory / name)) for each, value in variables.items()}),
        more_files=dict(code or {}),
    )


class Agent:
    """An observer and an executor whose looks the test takes itself."""

    def __init__(self, directory: Path) -> None:
        self.exchange = Exchange(directory)
        self.observer = Observer(Gcs.connect(ray.get_runtime_context().gcs_address), self.exchange)
        self.executor = Executor()
        self.session = self.executor.session

    def look(self) -> None:
        """Hand the orders over, act, and report the result."""
        self.observer.look()
        self.executor.look()
        self.observer.look()

    def until(
        self,
        is_so: Callable[[Reports], object],
        *groups: Group,
        pools: tuple[PlannedPool, ...] | None = None,
        seconds: float = 150,
    ) -> Reports:
        """Look until the reports say what is expected; returns them."""
        write_orders(self.exchange, self.session, groups, (pool(),) if pools is None else pools)
        return self.go_on_until(is_so, seconds)

    def go_on_until(self, is_so: Callable[[Reports], object], seconds: float = 60, pause: float = 0.1) -> Reports:
        deadline = time.monotonic() + seconds
        while True:
            self.look()
            reports = self.exchange.read_reports()
            assert reports is not None
            if is_so(reports):
                return reports
            assert time.monotonic() < deadline, f"still: {reports}"
            time.sleep(pause)


ACCUMULATOR = """
import os
import workergroups

class Accumulator(workergroups.Worker):
    def __init__(self, start=0, fail_on=None, message="", **more):
        super().__init__()
        if self.rank == fail_on:
            raise ValueError(message or f"rank {self.rank} was told to fail")
        self.value = start + self.rank
        self.more = more

    def add(self, x):
        self.value += x
        return self.value

    def arguments(self):
        return self.more

    def environment(self, name):
        return os.environ.get(name)

    def pid(self):
        return os.getpid()
"""
