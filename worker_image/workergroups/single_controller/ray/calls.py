"""The calls that a group's ranks have not finished, from any driver."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from workergroups.debugger import announced
from workergroups.ray_private.cluster_state import UnfinishedTask, actor_state, unfinished_tasks


@dataclass(frozen=True)
class Call:
    """One method of one rank that has been called and has not returned."""

    rank: int
    method: str
    """``__init__`` for a rank that is still in its constructor."""
    state: str
    """``running``, ``running, paused at`` if it waits for a debugger, ``waiting for arguments`` that other tasks
    compute, or ``queued`` behind another call.
    """
    seconds: float
    """How long it has been in that state, by the nodes' clocks."""
    job_id: str
    """The Ray job of the driver that made the call."""


class Calls(tuple[Call, ...]):
    """Calls in flight, by rank, running ones first.

    ``print`` shows a line for each method and state, with its ranks.
    """

    def __str__(self) -> str:
        if not self:
            return "no calls in flight"
        alike = defaultdict(list)
        for call in self:
            alike[call.method, call.state, call.job_id].append(call)
        return "\n".join(
            f"{method}: {state} for {max(call.seconds for call in calls):.1f} s "
            f"on {'rank' if len(calls) == 1 else 'ranks'} {', '.join(str(call.rank) for call in calls)} (job {job_id})"
            for (method, state, job_id), calls in alike.items()
        )


def calls_in_flight(actor_ids: Sequence[str]) -> Calls:
    """Return the unfinished calls of these actors, which are given in rank order.

    Ray's processes report once a second: a call that has just begun may be missing, and one that has just ended listed.
    """
    ranks = {actor_id: rank for rank, actor_id in enumerate(actor_ids)}
    now = time.time()
    paused = {actor_id: f", paused at {pause.where}" for actor_id, pause in announced.announced(ranks).items()}
    return Calls(
        sorted(
            (
                Call(
                    ranks[task.actor_id],
                    task.method,
                    task.state + paused.get(task.actor_id, "") if task.state == "running" else task.state,
                    max(0.0, now - task.since),
                    task.job_id,
                )
                for task in unfinished_tasks()
                if task.actor_id in ranks and not _is_constructed(task)
            ),
            key=lambda call: (call.rank, not call.state.startswith("running"), -call.seconds),
        )
    )


def _is_constructed(task: UnfinishedTask) -> bool:
    actor = actor_state(task.actor_id) if task.is_constructor else None
    return actor is not None and actor.state == "ALIVE"
