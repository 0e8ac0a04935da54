"""Report the actors that died, the latest first: ``python -m workergroups.processes.dead_actors``.

Ray's control service (the GCS) remembers them, also those of programs that have ended.
"""

from __future__ import annotations

import sys

from workergroups.answering import give
from workergroups.ray_private import records
from workergroups.ray_private.gcs import Gcs, address_of_this_node
from workergroups.ray_private.records import ActorRecord

from .in_gcs import actor_row
from .tables import DeadActorRow

_MOST = 1000


def answer() -> list[DeadActorRow]:
    """Return the latest of them."""
    gcs = Gcs.connect(address_of_this_node())
    pods = {node.id: node.pod for node in map(records.node, gcs.nodes())}
    jobs = {driver.id: driver.submission_id for driver in map(records.driver, gcs.drivers())}
    dead = sorted(map(records.actor, gcs.actors("DEAD")), key=lambda record: -record.end_time)
    users = [record for record in dead if not record.name.startswith(records.INTERNAL_ACTORS)]
    return [_row(record, jobs.get(record.job_id, ""), pods) for record in users[:_MOST]]


def _row(record: ActorRecord, submission_id: str, pods: dict[str, str]) -> DeadActorRow:
    death = record.death
    assert death is not None
    return DeadActorRow(
        actor=actor_row(record),
        job=submission_id or record.job_id,
        pod=pods.get(record.node_id, ""),
        pid=record.pid,
        died=record.end_time / 1000,
        reason=death.reason,
        message=death.message,
    )


if __name__ == "__main__":
    give(answer, *sys.argv[1:])
