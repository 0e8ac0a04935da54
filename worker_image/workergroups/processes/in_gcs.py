"""Report what Ray's control service (the GCS) knows: ``python -m workergroups.processes.in_gcs [SEEN]``.

It is no driver, so it needs no raylet, and the agent does not count it as a user's. With the digest of the pauses that
the asker has seen, it first waits until they change, for a while at most.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from workergroups.answering import give
from workergroups.debugger import announced
from workergroups.ray_private import records
from workergroups.ray_private.calls_in_flight import CallReader
from workergroups.ray_private.cluster_state import UnfinishedTask, unfinished_task
from workergroups.ray_private.gcs import Gcs, address_of_this_node
from workergroups.ray_private.records import ActorRecord
from workergroups.stacks.orphaned_calls import orphaned

from .tables import ActorRow, DriverRow, GcsTables, PauseRow, TaskRow, digest

WAIT_SECONDS = 20.0
_LOOK_SECONDS = 0.2


def answer(seen: str = "") -> Any:
    """Return the tables of the GCS that this node belongs to."""
    gcs = Gcs.connect(address_of_this_node())
    pods = {node.id: node.pod for node in map(records.node, gcs.nodes())}
    deadline = time.monotonic() + WAIT_SECONDS
    while seen and digest(_pauses(gcs, pods)) == seen and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)
    return tables(gcs, pods).to_json()


def tables(gcs: Gcs, pods: Mapping[str, str]) -> GcsTables:
    """Return what the GCS knows now; ``pods`` has the pod of each Ray node."""
    alive = list(map(records.actor, gcs.actors("ALIVE")))
    actors = [*alive, *(records.actor(raw) for state in records.NOT_ALIVE_YET for raw in gcs.actors(state))]
    constructed = {each.actor_id for each in alive}
    tasks = map(unfinished_task, CallReader(gcs.address).events())
    drivers = [driver for driver in map(records.driver, gcs.drivers()) if driver.ended is None]
    known, connected = {each.actor_id for each in actors}, {driver.id for driver in drivers}
    now = time.time()
    return GcsTables(
        tuple(actor_row(each) for each in actors if not each.name.startswith(records.INTERNAL_ACTORS)),
        tuple(
            DriverRow(each.id, each.submission_id, pods.get(each.node_id, ""), each.pid)
            for each in drivers
            if not each.namespace.startswith(records.INTERNAL_NAMESPACES)
        ),
        tuple(
            _task(task, now, is_orphaned=task.is_orphaned(connected, known.__contains__))
            for task in tasks
            if not (task.is_constructor and task.actor_id in constructed)
        ),
        _pauses(gcs, pods),
    )


def actor_row(record: ActorRecord) -> ActorRow:
    """Return the row of an actor."""
    return ActorRow(record.actor_id, record.class_name, record.name, record.namespace, record.worker_id, record.job_id)


def _pauses(gcs: Gcs, pods: Mapping[str, str]) -> tuple[PauseRow, ...]:
    written = gcs.get_many(announced.KV_NAMESPACE, gcs.keys(announced.KV_NAMESPACE))
    found = ((process_id, announced.read(data)) for process_id, data in written.items())
    return tuple(PauseRow(each, pods.get(pause.node_id, ""), pause) for each, pause in found if pause is not None)


def _task(task: UnfinishedTask, now: float, *, is_orphaned: bool) -> TaskRow:
    seconds = max(0.0, now - task.since)
    state = orphaned(task.state) if is_orphaned else task.state
    return TaskRow(task.task_id, task.parent_id, task.actor_id, task.worker_id, task.name, state, seconds, task.job_id)


if __name__ == "__main__":
    give(answer, *sys.argv[1:])
