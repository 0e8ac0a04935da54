"""The reporter keeps nothing of pools, groups, code and reports that have gone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.unit.agent.ray_world import SESSION, group, plan, pool
from tests.unit.retained import leaves_nothing, retained
from tests.unit.virtual_time import VirtualTimeLoop
from workergroups_agent.exchange import Exchange, ReportedGroup, ReportedPool, Reports
from workergroups_agent.liveness_file import LivenessFile
from workergroups_agent.reporter.serve import serve
from workergroups_agent.reporter.timings import ReporterTimings
from workergroups_api.manifest import CONFIG_MAP, WORKER_GROUP, Kind, Manifest
from workergroups_api.names import PLAN_KEY, plan_name
from workergroups_api.report import GroupReport, PoolReport


@dataclass
class ApiServer:
    """Has objects that the reporter follows, and takes whatever it writes."""

    objects: dict[tuple[Kind, str], Manifest] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    statuses: int = 0

    def set(self, objects: dict[tuple[Kind, str], Manifest]) -> None:
        self.objects = objects
        self.changed.set()
        self.changed = asyncio.Event()

    async def follow(self, kind: Kind, namespace: str, name: str, resync: int) -> AsyncIterator[Manifest | None]:
        while True:
            changed = self.changed
            yield self.objects.get((kind, name))
            await changed.wait()

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest:
        return {"metadata": {"uid": "uid-lease"}}

    async def apply(self, manifest: Manifest) -> None:
        pass

    async def apply_status(self, manifest: Manifest) -> None:
        self.statuses += 1


@contextmanager
def reporter(tmp_path) -> Any:
    """Yield an API server and an exchange with a reporter between them, and the loop in which it runs."""
    api, exchange = ApiServer(), Exchange(tmp_path)
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        running = serve(api, "team", "p", exchange, LivenessFile(tmp_path / "alive"), ReporterTimings())
        task = runner.get_loop().create_task(running)
        yield api, exchange, lambda seconds: runner.run(asyncio.sleep(seconds))
        task.cancel()


def of_other_names(number: int) -> tuple[dict[tuple[Kind, str], Manifest], Reports]:
    """Return a pool, a group with code, and what is reported of them."""
    name, uid = f"g{number}", f"uid-{number}"
    planned = group().model_copy(update={"name": name, "uid": uid})
    spec = {"worker": {"class": "train.Trainer"}, "code": {"configMap": {"name": f"code{number}"}}}
    objects = {
        (CONFIG_MAP, plan_name("p")): {"data": {PLAN_KEY: plan(pool(name=f"p{number}"), planned).model_dump_json()}},
        (CONFIG_MAP, f"code{number}"): {"data": {"train.py": f"# {number}" + "x" * 1000}},
        (WORKER_GROUP, name): {"metadata": {"name": name, "uid": uid}, "spec": spec},
    }
    reports = Reports(
        session=SESSION,
        pools={f"p{number}": ReportedPool(uid=f"uid-p{number}", report=PoolReport(session=SESSION))},
        groups={name: ReportedGroup(uid=uid, report=GroupReport(session=SESSION, incarnation=1, state="Launched"))},
    )
    return objects, reports


def of_the_same_names(number: int) -> tuple[dict[tuple[Kind, str], Manifest], Reports]:
    """Return the same objects each time, and another report."""
    objects, reports = of_other_names(0)
    changed = PoolReport(session=SESSION, joined_nodes=number % 3)
    return objects, reports.model_copy(update={"pools": {"p0": ReportedPool(uid="uid-p0", report=changed)}})


@pytest.mark.parametrize("world", [of_other_names, of_the_same_names])
def test_what_has_gone_leaves_nothing(tmp_path, world) -> None:
    with reporter(tmp_path) as (api, exchange, pass_time):

        def change(number: int) -> None:
            objects, reports = world(number)
            api.set(objects)
            exchange.write_reports(reports)
            exchange.beat(SESSION)
            pass_time(1.0)

        assert leaves_nothing(lambda: retained(change, 1000))
        assert api.statuses > 1000
