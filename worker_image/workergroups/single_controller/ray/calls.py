"""The calls that a group's ranks have not finished, from any driver."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from workergroups.debugger import announced
from workergroups.ray_private.cluster_state import UnfinishedTask, actor_state, all_dead, live_jobs, unfinished_tasks
from workergroups.stacks.orphaned_calls import RunningCall, is_orphaned, orphaned, returned
from workergroups.stacks.rank_stack import parse


@dataclass(frozen=True)
class Call:
    """One method of one rank that has been called and has not returned."""

    rank: int
    method: str
    """``__init__`` for a rank that is still in its constructor."""
    state: str
    """``running``, ``running, paused at`` if it waits for a debugger, ``waiting for arguments`` that other tasks
    compute, or ``queued`` behind another call. With ``, its caller has ended``, nobody waits for its result.
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


def calls_in_flight(actor_ids: Sequence[str], stacks: Callable[[Collection[int]], Mapping[int, str]]) -> Calls:
    """Return the unfinished calls of these actors, which are given in rank order.

    Ray's processes report once a second: a call that has just begun may be missing, and one that has just ended listed.

    Args:
        actor_ids: The actors.
        stacks: Asks ranks for their stacks, which tell whether they still run the calls of callers that have ended.
    """
    ranks = {actor_id: rank for rank, actor_id in enumerate(actor_ids)}
    tasks = [task for task in unfinished_tasks() if task.actor_id in ranks and not _is_constructed(task)]
    now, jobs = time.time(), live_jobs()
    paused = {actor_id: f", paused at {pause.where}" for actor_id, pause in announced.announced(ranks).items()}

    def call(task: UnfinishedTask) -> Call:
        state = task.state + paused.get(task.actor_id, "") if task.state == "running" else task.state
        state = orphaned(state) if task.is_orphaned(jobs, lambda actor_id: not all_dead([actor_id])) else state
        return Call(ranks[task.actor_id], task.method, state, max(0.0, now - task.since), task.job_id)

    found = {task.task_id: call(task) for task in tasks}
    gone = _returned(found, stacks)
    return Calls(
        sorted(
            (call for task_id, call in found.items() if task_id not in gone),
            key=lambda call: (call.rank, not call.state.startswith("running"), -call.seconds),
        )
    )


def _returned(calls: Mapping[str, Call], stacks: Callable[[Collection[int]], Mapping[int, str]]) -> set[str]:
    running = [
        RunningCall(task_id, str(call.rank), call.seconds, call.state)
        for task_id, call in calls.items()
        if call.state.startswith("running")
    ]
    unsure = {int(call.process) for call in running if is_orphaned(call.state)}
    return returned(running, {str(rank): parse(text) for rank, text in stacks(unsure).items()}) if unsure else set()


def _is_constructed(task: UnfinishedTask) -> bool:
    actor = actor_state(task.actor_id) if task.is_constructor else None
    return actor is not None and actor.state == "ALIVE"
