"""What Ray's control service (the GCS) knows about nodes, actors and placement groups.

The questions go to the GCS itself: Ray's public state API needs the dashboard, and limits how much it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import ray
import ray._private.state
from ray._raylet import ActorID, JobID, PlacementGroupID
from ray.core.generated.common_pb2 import TaskStatus
from ray.util.placement_group import PlacementGroup, placement_group_table

from workergroups.ray_private.death import Death

from .death_cause import decode


@dataclass(frozen=True)
class NodeResources:
    """One live node: its total resources, and those that no placement group or actor holds."""

    node_id: str
    address: str
    total: dict[str, float]
    available: dict[str, float]


@dataclass(frozen=True)
class ActorState:
    """One actor as the GCS sees it."""

    name: str
    """Empty if the actor has no name."""
    state: str
    """DEPENDENCIES_UNREADY, PENDING_CREATION, ALIVE (its constructor returned), RESTARTING or DEAD."""
    pid: int
    """The process id on its node; 0 before there is a process."""
    node_address: str
    node_id: str
    start_time: float
    """When its process was up, in milliseconds since the epoch."""
    death: Death | None = None
    """Why it is dead, if it is."""


@dataclass(frozen=True)
class UnfinishedTask:
    """One task that has not ended: a call of an actor's method, its construction, a plain task, or a driver."""

    task_id: str
    parent_id: str
    """The task that has called it; a driver is a task, too."""
    actor_id: str
    """Empty for a plain task and for a driver."""
    worker_id: str
    """The process that runs it; empty before it runs, and while an actor is constructed."""
    name: str
    """``Class.method``, or the function of a plain task; empty for a driver."""
    method: str
    state: str
    """``running``, with what it waits for if Ray knows; ``waiting for arguments``; or ``queued``."""
    since: float
    """When it entered that state, in seconds since the epoch by the clock of the node that reported it."""
    job_id: str
    """The Ray job of its caller; of a driver, its own. What an actor calls belongs to the job that has created it."""
    caller_actor_id: str
    """The actor that has called it; empty if a driver or a plain task has."""

    def is_orphaned(self, live_jobs: Container[str], lives: Callable[[str], bool]) -> bool:
        """Return whether its caller has ended, by the jobs and the actors that live. Constructors never are."""
        if self.is_constructor:
            return False
        return not lives(self.caller_actor_id) if self.caller_actor_id else self.job_id not in live_jobs

    @property
    def is_constructor(self) -> bool:
        """Whether it constructs an actor.

        The caller reports its end, and not if it is killed within the same second. That the actor is alive is sure.
        """
        return self.method == "__init__"


_ACTOR_BYTES, _JOB_BYTES = ActorID.size(), JobID.size()
_NONE = {0xFF}
_ENDED = {TaskStatus.FINISHED, TaskStatus.FAILED}
_STATES = {
    TaskStatus.PENDING_ARGS_AVAIL: "waiting for arguments",
    TaskStatus.PENDING_ARGS_FETCH: "waiting for arguments",
    TaskStatus.PENDING_ACTOR_TASK_ARGS_FETCH: "waiting for arguments",
    TaskStatus.GETTING_AND_PINNING_ARGS: "waiting for arguments",
    TaskStatus.RUNNING: "running",
    TaskStatus.RUNNING_IN_RAY_GET: "running, in ray.get",
    TaskStatus.RUNNING_IN_RAY_WAIT: "running, in ray.wait",
}


def live_nodes() -> list[NodeResources]:
    """Return all live nodes of the cluster."""
    available = ray._private.state.available_resources_per_node()
    return [
        NodeResources(
            node_id=node["NodeID"],
            address=node["NodeManagerAddress"],
            total=node["Resources"],
            available=available.get(node["NodeID"], {}),
        )
        for node in ray.nodes()
        if node["Alive"]
    ]


def actor_state(actor_id: str) -> ActorState | None:
    """Return the actor with that hexadecimal id; ``None`` when the GCS does not know it."""
    found = ray._private.state.actors(actor_id)
    if not found:
        return None
    return ActorState(
        name=found["Name"],
        state=found["State"],
        pid=found["Pid"],
        node_address=found["Address"]["IPAddress"],
        node_id=found["Address"]["NodeID"],
        start_time=found["StartTime"],
        death=decode(found["DeathCause"]) if found["State"] == "DEAD" else None,
    )


def unfinished_tasks() -> list[UnfinishedTask]:
    """Return the unfinished tasks of all programs on the cluster, as far as Ray's processes have reported them."""
    return [
        unfinished_task(event)
        for event in ray._private.state.state._get_all_task_events()
        if event.state_updates.state_ts_ns and not _has_ended(event)
    ]


def _has_ended(event: Any) -> bool:
    return not _ENDED.isdisjoint(event.state_updates.state_ts_ns)


def unfinished_task(event: Any) -> UnfinishedTask:
    """Return the task that an event of Ray describes, which has the times at which it reached each state."""
    info, updates = event.task_info, event.state_updates
    caller_actor_id, caller_job_id = caller_of(info.parent_task_id)
    reached: Mapping[int, int] = updates.state_ts_ns
    state = max(reached, key=lambda status: reached[status])
    return UnfinishedTask(
        task_id=info.task_id.hex(),
        parent_id=info.parent_task_id.hex(),
        actor_id=info.actor_id.hex(),
        worker_id=updates.worker_id.hex(),
        name=info.func_or_class_name,
        method=info.name.rpartition(".")[2],
        state=_STATES.get(state, "queued"),
        since=reached[state] / 1e9,
        job_id=caller_job_id or info.job_id.hex(),
        caller_actor_id=caller_actor_id,
    )


def caller_of(parent_task_id: bytes) -> tuple[str, str]:
    """Return the actor and the job of the task that has called another one; either is empty if there is none.

    Ray's event has the job that created the callee's actor instead. A task's id ends with the id of its actor, or with
    that many bits that are set, and an actor's id ends with its job's.
    """
    actor, job = parent_task_id[-_ACTOR_BYTES:], parent_task_id[-_JOB_BYTES:]
    has_actor = set(actor[:-_JOB_BYTES]) != _NONE
    return actor.hex() if has_actor else "", job.hex() if set(job) != _NONE else ""


def live_jobs() -> set[str]:
    """Return the ids of the jobs whose drivers are connected."""
    return {job["JobID"] for job in ray._private.state.jobs() if not job["IsDead"]}


def job_of_actor(name: str, namespace: str) -> str | None:
    """Return the id of the job that has created the live actor of that name; ``None`` if there is none."""
    try:
        handle = ray.get_actor(name, namespace=namespace)
    except ValueError:
        return None
    return str(ray._private.state.actors(handle._actor_id.hex())["JobID"])


def node_of_bundles(placement_group: PlacementGroup) -> dict[int, str]:
    """Return the node id of each bundle of a placed group, by bundle index."""
    nodes: dict[int, str] = placement_group_table(placement_group)["bundles_to_node_id"]
    return nodes


def placement_group_handle(placement_group_id: str, bundles: list[dict[str, float]]) -> PlacementGroup:
    """Return a handle on the placement group with that hexadecimal id, which another program has created."""
    return PlacementGroup(PlacementGroupID.from_hex(placement_group_id), bundle_cache=bundles)


def is_placed(placement_group: PlacementGroup) -> bool:
    """Return whether the placement group has its bundles; not if it was made on a Ray that has ended."""
    return bool(placement_group_table(placement_group).get("state") == "CREATED")


def is_removed(placement_group: PlacementGroup) -> bool:
    """Return whether the GCS has taken the placement group away."""
    return bool(placement_group_table(placement_group).get("state") == "REMOVED")


def all_dead(actor_ids: Iterable[str]) -> bool:
    """Return whether none of these actors runs any more."""
    states = (actor_state(actor_id) for actor_id in actor_ids)
    return all(state is None or state.state == "DEAD" for state in states)
