"""A group on a local Ray, as the agent's executor starts it on pods."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import ray
from ray.cluster_utils import Cluster

import workergroups
from tests.ray.agent import planned
from workergroups.naming import NAMESPACE
from workergroups.ray_private import start
from workergroups.warm import places
from workergroups_agent.exchange import Reports
from workergroups_agent.ray_start import our_start_process
from workergroups_api.vocabulary import Variable

CODE = """
import os

import torch
import workergroups


class Accumulator(workergroups.Worker):
    def pid(self):
        return os.getpid()
"""
COLD = {Variable.WARM.value: ""}
"""With this, ranks start as they did without fork servers."""
_SECONDS = 300.0
_POOLS = (planned.pool(nodes=1),)
_NAME = "trainer"


@contextlib.contextmanager
def agent() -> Iterator[planned.Agent]:
    """Start a Ray of two nodes, whose raylets start processes as they do in pods; yield the agent."""
    os.environ.update(
        RAY_AUTH_MODE="disabled",  # no token file
        RAY_prestart_worker_first_driver="0",  # no process for each of these CPUs
    )
    start.replace(start.START_PROCESS, our_start_process)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "num_gpus": 0, "include_dashboard": False})
    cluster.add_node(num_cpus=100, num_gpus=4, labels={"ray.io/node-group": planned.NODE_GROUP})
    ray.init(address=cluster.address, namespace=NAMESPACE, log_to_driver=False)
    try:
        with tempfile.TemporaryDirectory() as directory:
            yield planned.Agent(Path(directory))
    finally:
        ray.shutdown()
        cluster.shutdown()


class Measured:
    """A group that is created, and restarted by hand."""

    def __init__(self, agent: planned.Agent, count: int, env: dict[str, str] | None = None) -> None:
        self._agent = agent
        self._group = planned.Group(
            name=_NAME,
            bundles=(("actors", 0, count),),
            code=CODE,
            launch=planned.launch(env=env or {}),
        )
        self._count = count
        self.pids: list[int] = []

    def answers(self) -> None:
        """Wait until all ranks of the present incarnation have answered."""
        expected = self._group.incarnation
        last = f"0-{self._count - 1}" if self._count > 1 else "0"
        self._until(
            lambda reports: (
                (found := reports.groups.get(_NAME)) is not None
                and (found.report.incarnation, found.report.ready) == (expected, last)
            )
        )
        self.pids = workergroups.attach(_NAME).execute_all_sync("pid")

    def restart(self) -> float:
        """Kill the last rank; return the seconds until all ranks of the next incarnation have answered.

        What the operator decides takes no time here: the next incarnation is planned when the agent reports the death.
        """
        began = time.monotonic()
        os.kill(self.pids[-1], signal.SIGKILL)
        self._until(lambda reports: reports.groups[_NAME].report.failures)
        self._group = dataclasses.replace(self._group, incarnation=self._group.incarnation + 1)
        self.answers()
        return time.monotonic() - began

    def recreate(self) -> float:
        """Delete the group and create it again; return the seconds until all ranks have answered."""
        began = time.monotonic()
        self.delete()
        self._group = dataclasses.replace(self._group, uid=f"uid-{next(planned.UIDS)}", incarnation=1)
        self.answers()
        return time.monotonic() - began

    def delete(self) -> None:
        """Delete the group, and wait until its ranks are gone."""
        self._agent.until(lambda _: not ray.util.list_named_actors(all_namespaces=True), pools=_POOLS, seconds=_SECONDS)

    def fork_server(self) -> int:
        """Wait until a fork server waits for the group's next ranks; return its process id."""
        deadline = time.monotonic() + _SECONDS
        while (pid := self._fork_server()) is None:
            assert time.monotonic() < deadline, "the fork server does not start: see workergroups-warm-*.log"
            time.sleep(0.2)
        return pid

    def _fork_server(self) -> int | None:
        variables = Path(f"/proc/{self.pids[0]}/environ").read_text().split("\0")
        _, _, directory = next(each for each in variables if each.startswith(Variable.WARM)).partition("=")
        waits = Path(directory, places.SOCKET).exists()
        return int(Path(directory, places.LOCK).read_text()) if waits else None

    def _until(self, is_so: Callable[[Reports], object]) -> None:
        self._agent.until(is_so, self._group, pools=_POOLS, seconds=_SECONDS)
