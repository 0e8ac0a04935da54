"""What 200 waiting pools with 1,000 groups cost the operator: `python -m bench.waiting_pools CHECKOUT...`.

Each checkout's operator runs as its own process against a new API server with KubeRay, whose pods nobody
schedules. A machine's speed changes from hour to hour: compare the checkouts of one run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bench.running_process import RunningProcess
from tests.simulation.api import Api, eventually
from tests.simulation.control_plane import Access, control_plane
from tests.simulation.scene import group, pool
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP, Manifest

NAMESPACES = 10
GROUPS_OF_A_POOL = 5
CREATED_AT_ONCE = 8
LARGE_BYTES = 1_400_000
NEW_POOLS = 5
# With a charset in its content type, the API server counts an apply as a patch.
_PATCHED = re.compile(
    r'^apiserver_request_total\{.*dry_run="",.*resource="(?!leases").*verb="(APPLY|PATCH)".*\} (?P<count>\S+)$'
)
# Without kopf's own health port, which another operator on this machine may use.
PROGRAM = "import workergroups_operator.__main__ as m; m.LIVENESS_ENDPOINT = None; m.main()"


@dataclass
class Figures:
    """What one operator used."""

    seconds_to_all: float = 0.0
    cpu_to_all: float = 0.0
    percent_after_a_minute: float = 0.0
    percent_at_rest: float = 0.0
    resident_mib: float = 0.0
    peak_mib: float = 0.0
    kuberay_mib: float = 0.0
    kuberay_percent_at_rest: float = 0.0
    first_status_seconds: float = 0.0
    # Objects that were patched: by the operator, as nobody else does here.
    writes_of_an_object: float = 0.0
    writes_a_minute_at_rest: float = 0.0
    # From the operator's start to the first status of a pool that was created when it started.
    restart_seconds: float = 0.0


@contextmanager
def operator(checkout: Path, access: Access, profile: Path | None) -> Iterator[RunningProcess]:
    """Run within the context."""
    with tempfile.TemporaryDirectory(prefix="waiting-pools-") as directory:
        config = Path(directory) / "kubeconfig"
        config.write_text(json.dumps(access.kubeconfig("operator")))
        sources = [checkout / part for part in ("common", "crds", "operator", "worker_image")]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(map(str, sources)),
            "KUBECONFIG": str(config),
            "WORKER_IMAGE": "example.test/worker:1",
            "OPERATOR_IMAGE": "example.test/operator:1",
        }
        profiler = ["-m", "cProfile", "-o", str(profile)] if profile else []
        program = Path(directory) / "program.py"
        program.write_text(PROGRAM)
        with Path(directory, "log").open("wb") as log:
            # The kernel kills it when this process ends.
            command = ["setpriv", "--pdeathsig=KILL", sys.executable, *profiler, str(program)]
            process = subprocess.Popen(command, env=environment, stderr=log)
            try:
                yield RunningProcess(process.pid)
            finally:
                process.terminate()
                process.wait(timeout=30)


class Users:
    """The users of one checkout: their pools are as in its quickstart, since fields differ between versions."""

    def __init__(self, api: Api, checkout: Path, namespaces: Sequence[str]) -> None:
        self._api = api
        self._namespaces = namespaces
        text = (checkout / "examples" / "quickstart" / "pool.yaml").read_text()
        self._spec: dict[str, Any] = yaml.safe_load(text)["spec"]

    async def create_namespaces(self, labels: Mapping[str, str] | None = None) -> None:
        """Create namespaces without pools."""
        for namespace in self._namespaces:
            await self._api.create_namespace(namespace, labels)

    async def create_pools(self, pools: int, groups: int = GROUPS_OF_A_POOL) -> None:
        """Create pools and their groups, a few at a time."""
        slots = asyncio.Semaphore(CREATED_AT_ONCE)

        async def create(manifest: Manifest) -> None:
            async with slots:
                await self._api.create(manifest)

        await asyncio.gather(*map(create, self._objects(pools, groups)))

    async def create_large_groups(self, count: int) -> None:
        """Create groups of etcd's maximum size, one after the other: one long text, or as many values as fit."""
        shapes: tuple[list[Any], ...] = (["x" * LARGE_BYTES], [[{}] * (LARGE_BYTES // 3)])
        for number in range(count):
            namespace = self._namespaces[number % len(self._namespaces)]
            worker = {"class": "train.Trainer", "args": shapes[number % len(shapes)]}
            await self._api.create(group(namespace, f"large-{number}", pools=[{"name": f"p{number}"}], worker=worker))

    def _objects(self, pools: int, groups: int) -> Iterator[Manifest]:
        for number in range(pools):
            namespace = self._namespaces[number % len(self._namespaces)]
            yield self._pool(namespace, f"p{number}")
            for each in range(groups):
                yield group(namespace, f"p{number}-g{each}", pools=[{"name": f"p{number}"}])

    def _pool(self, namespace: str, name: str) -> Manifest:
        return pool(namespace, name) | {"spec": self._spec}

    async def all_have_a_status(self) -> bool:
        """Return whether every object has a status from the operator."""
        for namespace in self._namespaces:
            for kind in (RESOURCE_POOL, WORKER_GROUP):
                if not all(map(_has_status, await self._api.list(kind, namespace))):
                    return False
        return True

    async def first_status(self, name: str) -> float:
        """Return the seconds until a new pool has a status."""
        namespace, began = self._namespaces[0], time.monotonic()

        async def has_status() -> bool:
            return _has_status(await self._api.get(RESOURCE_POOL, namespace, name) or {})

        await self._api.create(self._pool(namespace, name))
        await eventually("a first status", has_status, seconds=60, every=0.01)
        return time.monotonic() - began


def _has_status(body: Manifest) -> bool:
    return bool(body.get("status", {}).get("conditions"))


async def measure(
    access: Access, checkout: Path, running: RunningProcess, pools: int, large: int, rest_after: float, window: float
) -> Figures:
    """Create the pools, and measure the operator then, a minute later, and at rest."""
    figures = Figures()
    async with Api.connect(access) as api:
        users = Users(api, checkout, [f"n{number}" for number in range(NAMESPACES)])
        await users.create_namespaces()
        await asyncio.sleep(8)
        before, written, began = running.cpu_seconds, await patched(api), time.monotonic()
        await users.create_pools(pools)
        created = time.monotonic()
        await eventually("a status of each", users.all_have_a_status, seconds=600, every=1)
        figures.seconds_to_all = time.monotonic() - began
        figures.cpu_to_all = running.cpu_seconds - before
        await users.create_large_groups(large)
        await asyncio.sleep(60)
        figures.percent_after_a_minute = await running.percent(window)
        await asyncio.sleep(max(0.0, created + rest_after - time.monotonic()))
        at_rest, kuberay = await patched(api), RunningProcess(access.processes["ray-operator"])
        figures.writes_of_an_object = (at_rest - written) / (pools * (1 + GROUPS_OF_A_POOL) + large)
        figures.percent_at_rest, figures.kuberay_percent_at_rest = await asyncio.gather(
            *(each.percent(window) for each in (running, kuberay))
        )
        figures.writes_a_minute_at_rest = (await patched(api) - at_rest) / window * 60
        figures.resident_mib, figures.peak_mib = running.resident_mib, running.peak_mib
        figures.kuberay_mib = kuberay.resident_mib
        waits = []
        for number in range(NEW_POOLS):
            waits.append(await users.first_status(f"new-{number}"))
            await asyncio.sleep(2)
        figures.first_status_seconds = statistics.median(waits)
    return figures


async def patched(api: Api) -> float:
    """Return how many objects but Leases were patched: by the operator and the agents, as nobody else does here."""
    text = await api.text("/metrics")
    return sum(float(found["count"]) for line in text.splitlines() if (found := _PATCHED.match(line)))


async def first_status(access: Access, checkout: Path, name: str) -> float:
    """Return the seconds until a new pool has a status."""
    async with Api.connect(access) as api:
        return await Users(api, checkout, ["n0"]).first_status(name)


def main() -> None:
    """Measure one checkout after the other, and print what each used."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--pools", type=int, default=200)
    parser.add_argument("--large", type=int, default=0, help="also create groups of etcd's maximum size")
    parser.add_argument("--rest-after", type=float, default=300, help="seconds from creation to rest")
    parser.add_argument("--window", type=float, default=60, help="seconds for which CPU time is counted")
    parser.add_argument("--profile", type=Path, help="write cProfile's results into this file")
    arguments = parser.parse_args()
    for checkout in arguments.checkouts:
        path = checkout.resolve()
        with control_plane(path) as access:
            with operator(path, access, arguments.profile) as running:
                figures = asyncio.run(
                    measure(
                        access, path, running, arguments.pools, arguments.large, arguments.rest_after, arguments.window
                    )
                )
            with operator(path, access, None):
                figures.restart_seconds = asyncio.run(first_status(access, path, "after-restart"))
        print(checkout, json.dumps({name: round(value, 2) for name, value in vars(figures).items()}), flush=True)


if __name__ == "__main__":
    main()
