"""The checks of pools' nodes: the executor starts a process for each in a pod of the pool, which does all the rest.

The process takes none of the node's resources, and everything that it starts ends with it.
"""

import contextlib
import logging
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.util import get_placement_group, placement_group_table, remove_placement_group

from workergroups.checking.answers import Question, seconds_for
from workergroups.node_tasks import on_node
from workergroups.ray_private.gcs import Gcs
from workergroups_agent.executor.preflight import PreflightOrder, PreflightProcess, failed
from workergroups_agent.placements import passed_nodes
from workergroups_agent.preflight_records import PreflightReader, PreflightRecord, remove_but, write
from workergroups_agent.preflight_state import held_nodes, is_about, nodes_to_ask
from workergroups_agent.ray_state import JoinedNode, RayState
from workergroups_api.plan import ClusterPlan, PlannedPool
from workergroups_api.vocabulary import Preflight, PreflightState
from workergroups_common.backoff import Backoff

LOGGER = logging.getLogger(__name__)
# The process must start within this time, in addition to the time for the check itself.
START_SECONDS = 60.0
# For this long after the end of its process, a check may still get placement groups that the process has asked for.
LEFTOVER_SECONDS = 10.0
# Before a check of the same nodes is repeated that failed.
PAUSES = Backoff(20.0, 300.0)


@dataclass(frozen=True)
class _Try:
    """A check that runs."""

    record: PreflightRecord
    # The handle of its process, which ends when the handle is dropped.
    process: Any
    ref: Any
    until: float
    pod: str


@dataclass(frozen=True)
class _Failure:
    """How often in a row a check has failed, and when the next may begin."""

    record: PreflightRecord
    count: int
    next: float


class PreflightTasks:
    """The checks of all pools, by the pool's UID."""

    def __init__(self, gcs: Gcs, clock: Callable[[], float] = time.monotonic) -> None:
        self._gcs = gcs
        self._reader = PreflightReader(gcs)
        self._clock = clock
        self._tries: dict[str, _Try] = {}
        self._failures: dict[str, _Failure] = {}
        # The names of the placement groups of checks that have ended, and until when to look for these groups.
        self._ended: dict[str, float] = {}
        # The pools that may have records; None until those of earlier executors are removed.
        self._recorded: frozenset[str] | None = None

    def look(self, plan: ClusterPlan, state: RayState) -> None:
        """Start the checks that are due, and end those that are late or whose nodes are gone."""
        pools = {pool.uid: pool for pool in plan.pools if pool.preflight is not None}
        for uid in self._tries.keys() - pools.keys():
            self._end(uid)
        if self._recorded != frozenset(pools):
            remove_but(self._gcs, pools)
            self._recorded = frozenset(pools)
            self._failures = {uid: failure for uid, failure in self._failures.items() if uid in pools}
        for uid, pool in pools.items():
            if uid in self._tries:
                self._settle(uid, state)
            else:
                self._begin(pool, plan, state)
        self._remove_leftovers()

    def _settle(self, uid: str, state: RayState) -> None:
        """End a check that is over; the next look begins another one if nodes have not passed."""
        running = self._tries[uid]
        if not set(running.record.asked) <= state.nodes.keys():
            self._end(uid)
            return
        done, _ = ray.wait([running.ref], timeout=0, fetch_local=False)
        if not done and self._clock() < running.until:
            return
        self._end(uid)
        found = self._reader.read([uid]).get(uid)
        if found is None or found.attempt != running.record.attempt or found.state is PreflightState.CHECKING:
            why = "ended before it reported a result" if done else "did not end in time"
            found = failed(running.record, f"the check {why}: its process was in pod {running.pod}")
            write(self._gcs, uid, found)
        LOGGER.info("preflight of pool %s: %s", uid, found.state)
        if found.state is PreflightState.FAILED:
            count = self._count(found, uid) + 1
            self._failures[uid] = _Failure(found, count, self._clock() + PAUSES.after(count))
        else:
            self._failures.pop(uid, None)

    def _begin(self, pool: PlannedPool, plan: ClusterPlan, state: RayState) -> None:
        held = held_nodes(pool, plan, state)
        nodes = nodes_to_ask(pool, held, state)
        failure = self._failures.get(pool.uid)
        is_paused = failure and is_about(failure.record, pool, nodes) and self._clock() < failure.next
        if not nodes or is_paused:
            return
        before = state.preflights.get(pool.uid)
        order = order_for(pool, nodes, {node.id for node in held.values()}, state)
        # While a check is repeated, its record goes on saying what was wrong.
        if before is None or not is_about(before, pool, nodes) or before.state is not PreflightState.FAILED:
            write(self._gcs, pool.uid, order.begun)
        # Another node than before, in case that one cannot run the process.
        node = nodes[self._count(order.begun, pool.uid) % len(nodes)]
        process = on_node(node.id)(PreflightProcess).remote()
        until = self._clock() + START_SECONDS + seconds_for(order.question)
        LOGGER.info("preflight of pool %s: asking %d nodes", pool.name, len(nodes))
        self._tries[pool.uid] = _Try(order.begun, process, process.run.remote(order), until, node.pod)

    def _count(self, record: PreflightRecord, uid: str) -> int:
        """Return how often in a row a check of these nodes has failed."""
        failure = self._failures.get(uid)
        is_same = failure is not None and (failure.record.asked, failure.record.generation) == (
            record.asked,
            record.generation,
        )
        return failure.count if failure is not None and is_same else 0

    def _end(self, uid: str) -> None:
        ended = self._tries.pop(uid)
        with contextlib.suppress(ray.exceptions.RayError, ValueError):
            ray.kill(ended.process)
        self._ended[_placement_name(ended.record.attempt)] = self._clock() + LEFTOVER_SECONDS

    def _remove_leftovers(self) -> None:
        """Remove the placement groups of processes that were killed: Ray would keep them as long as this executor."""
        if not self._ended:
            return
        for group in placement_group_table().values():
            if group["state"] != "REMOVED" and str(group["name"]).startswith(tuple(self._ended)):
                LOGGER.info("removing placement group %s", group["name"])
                with contextlib.suppress(ray.exceptions.RayError, ValueError):  # it may have gone since
                    remove_placement_group(get_placement_group(group["name"]))
        self._ended = {name: until for name, until in self._ended.items() if self._clock() < until}


def order_for(pool: PlannedPool, nodes: Sequence[JoinedNode], held: set[str], state: RayState) -> PreflightOrder:
    """Return the order to check these nodes. The all-reduce is measured when no node of the pool has passed before."""
    assert pool.preflight is not None  # or else there would be nothing to ask
    nodes = sorted(nodes, key=lambda node: node.pod)  # the order of their answers
    known = passed_nodes(pool, state) & held
    before, attempt = state.preflights.get(pool.uid), uuid.uuid4().hex
    question = Question(
        pool=pool.name,
        node_group=pool.node_group,
        nodes=len(nodes),
        node_ids=[node.id for node in nodes],
        vendor=pool.vendor,
        processes=pool.processes_per_node,
        devices=pool.devices_per_process if pool.device else 0,
        device=pool.device or "GPU",
        is_reserved=pool.reserves,
        placement_name=_placement_name(attempt),
        shared_memory=pool.preflight.shared_memory,
        writable=list(pool.preflight.writable),
        fabric=pool.preflight.level is Preflight.FABRIC and not known,
    )
    what = "asking the nodes and measuring an all-reduce" if question["fabric"] else "asking the nodes"
    begun = PreflightRecord(
        attempt=attempt,
        level=pool.preflight.level,
        generation=pool.generation,
        state=PreflightState.CHECKING,
        message=f"{what}, {len(nodes)} in all, for {START_SECONDS + seconds_for(question):.0f} s at most",
        asked=tuple(node.id for node in nodes),
        passed=tuple(sorted(known)),
        like={id_: said for id_, said in before.like.items() if id_ in known} if before and known else {},
    )
    return PreflightOrder(pool.uid, question, begun)


def _placement_name(attempt: str) -> str:
    return f"preflight-{attempt}-"
