"""The records of Ray's control service (the GCS), as values without anything of Ray's protocol in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError
from ray.core.generated import gcs_pb2

from workergroups.naming import NODE_GROUP_LABEL
from workergroups.ray_private.death import Death

from . import death_cause

# The key of a submitted job's id in the metadata of its driver.
_SUBMISSION_ID = "job_submission_id"
# Ray's dashboard and the like are drivers in namespaces that begin with this.
INTERNAL_NAMESPACES = "_ray_internal_"
NOT_ALIVE_YET = ("PENDING_CREATION", "DEPENDENCIES_UNREADY", "RESTARTING")
"""The states of actors that are being created."""
INTERNAL_ACTORS = "_ray_internal_"
"""The actors that run submitted jobs have names that begin with this."""


@dataclass(frozen=True)
class NodeRecord:
    """A Ray node that is or was in the cluster."""

    id: str
    pod: str
    """The pod in which it runs, or else its host's name. It is untrusted text of any length."""
    address: str
    node_group: str | None
    """The KubeRay worker group that the pod belongs to."""
    is_alive: bool
    is_head: bool
    started: float
    """When it joined, in seconds since the epoch by the clock of the head."""
    metrics_port: int
    """Where Prometheus finds its metrics and those of its workers."""


@dataclass(frozen=True)
class PlacementGroupRecord:
    """A placement group that is or was in the cluster."""

    name: str
    namespace: str
    state: str
    """PENDING, CREATED, REMOVED or RESCHEDULING."""
    scheduling_state: str
    """Why it is not placed: INFEASIBLE, NO_RESOURCES and others."""


@dataclass(frozen=True)
class ActorRecord:
    """An actor that is or was in the cluster."""

    actor_id: str
    name: str
    namespace: str
    state: str
    """DEPENDENCIES_UNREADY, PENDING_CREATION, ALIVE, RESTARTING or DEAD."""
    class_name: str
    repr_name: str
    """What its class's ``__repr__`` returned once the constructor had returned; empty before."""
    node_id: str
    node_address: str
    worker_id: str
    """Ray's id of its process; empty before there is one."""
    pid: int
    """The process id on its node; 0 before there is a process."""
    start_time: int
    """When its process was up, in milliseconds since the epoch."""
    end_time: int
    """When it died, in milliseconds since the epoch; 0 if it has not."""
    job_id: str
    """Ray's id of the driver whose program has created it."""
    cause: Any
    """Ray's own record of its death."""

    @property
    def death(self) -> Death | None:
        """Why it is dead, if it is. The record may hold a user's exception of any size, so it is read on demand."""
        return death_cause.decode(self.cause) if self.state == "DEAD" else None


@dataclass(frozen=True)
class DriverRecord:
    """A driver that is or was connected to the cluster. Ray calls it a job."""

    id: str
    namespace: str
    submission_id: str
    """The id of the job that was submitted; empty for other programs. It is untrusted text of any length."""
    node_id: str
    pid: int
    """The process id on its node."""
    ended: float | None
    """When it ended, in seconds since the epoch by the clock of the head; ``None`` while it is connected."""


def node(info: gcs_pb2.GcsNodeInfo) -> NodeRecord:
    """Read the record of a node, as `gcs.Gcs.nodes` returns it.

    KubeRay sets Ray's instance id to the pod's name. The host's name is another one with ``hostNetwork``, or when a
    template sets it.
    """
    return NodeRecord(
        id=info.node_id.hex(),
        pod=info.instance_id or info.node_manager_hostname,
        address=info.node_manager_address,
        node_group=info.labels.get(NODE_GROUP_LABEL),
        is_alive=info.state == gcs_pb2.GcsNodeInfo.ALIVE,
        is_head=info.is_head_node,
        started=info.start_time_ms / 1000,
        metrics_port=info.metrics_export_port,
    )


def placement_group(raw: bytes) -> PlacementGroupRecord:
    """Read the record of a placement group.

    Raises:
        ValueError: It cannot be read: a text is not UTF-8, or this Ray does not know a state.
    """
    record = _parsed(gcs_pb2.PlacementGroupTableData, raw)
    return PlacementGroupRecord(
        name=record.name,
        namespace=record.ray_namespace,
        state=gcs_pb2.PlacementGroupTableData.PlacementGroupState.Name(record.state),
        scheduling_state=gcs_pb2.PlacementGroupStats.SchedulingState.Name(record.stats.scheduling_state),
    )


def actor(raw: bytes) -> ActorRecord:
    """Read the record of an actor.

    Raises:
        ValueError: It cannot be read: a text is not UTF-8, or this Ray does not know a state.
    """
    record = _parsed(gcs_pb2.ActorTableData, raw)
    return ActorRecord(
        actor_id=record.actor_id.hex(),
        name=record.name,
        namespace=record.ray_namespace,
        state=gcs_pb2.ActorTableData.ActorState.Name(record.state),
        class_name=record.class_name,
        repr_name=record.repr_name,
        node_id=record.address.node_id.hex(),
        node_address=record.address.ip_address,
        worker_id=record.address.worker_id.hex(),
        pid=record.pid,
        start_time=record.start_time,
        end_time=record.end_time,
        job_id=record.job_id.hex(),
        cause=record.death_cause,
    )


def driver(raw: bytes) -> DriverRecord:
    """Read the record of a driver.

    Raises:
        ValueError: It cannot be read, such as a text that is not UTF-8.
    """
    record = _parsed(gcs_pb2.JobTableData, raw)
    return DriverRecord(
        id=record.job_id.hex(),
        namespace=record.config.ray_namespace,
        submission_id=record.config.metadata.get(_SUBMISSION_ID, ""),
        node_id=record.driver_address.node_id.hex(),
        pid=record.driver_pid,
        ended=record.end_time / 1000 if record.is_dead else None,
    )


def worker_end(raw: bytes) -> float | None:
    """Read from the record of a worker process when it ended, in seconds since the epoch; ``None`` if it has not.

    Raises:
        ValueError: It cannot be read, such as a text that is not UTF-8.
    """
    ended: int = _parsed(gcs_pb2.WorkerTableData, raw).end_time_ms
    return ended / 1000 if ended else None


def _parsed(kind: Any, raw: bytes) -> Any:
    try:
        return kind.FromString(raw)
    except DecodeError as error:
        raise ValueError(str(error)) from None
