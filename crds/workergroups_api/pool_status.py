"""The status of a ResourcePool."""

from typing import Annotated

from pydantic import AwareDatetime, Field

from workergroups_api.bounded_text import Message, Ranges, Term
from workergroups_api.model import WHOLE, ApiModel
from workergroups_api.report import DriverJobs, PoolReport
from workergroups_api.retries import Retries
from workergroups_api.status_summary import PoolSummary

MAX_VICTIMS = 16


class Victim(ApiModel):
    """A group that would lose nodes if the pool gave them up."""

    group: Annotated[Term, Field(description="Name of the group.")]
    nodes: Annotated[
        Ranges, Field(description="The nodes that it holds beyond `spec.nodes`, as ranges, such as `2-3`.")
    ]


class LostDrivers(ApiModel):
    """Drivers that ended since Ray's head was lost."""

    count: Annotated[int, Field(description="Number of drivers that were connected.")]
    jobs: DriverJobs = ()
    time: Annotated[AwareDatetime, Field(description="When the operator noticed that the head was lost.")]


class PoolDrivers(ApiModel):
    """The drivers on the pool's Ray cluster, in the latest Ray session that the agent has reported."""

    session: Annotated[Term, Field(description="The Ray session in which they were counted.")]
    head: Annotated[Term | None, Field(description="Ray's id of the head's node when they were counted.")] = None
    running: Annotated[
        int, Field(description="Number of drivers when the agent last looked; 0 once the session has ended.")
    ] = 0
    jobs: DriverJobs = ()
    lost: Annotated[
        LostDrivers | None,
        Field(
            description="The drivers that ended with an earlier head. Absent if there were none, or if a driver has "
            "connected since."
        ),
    ] = None


class PoolIdle(ApiModel):
    """Since when a pool has been idle, and whether the operator has suspended it."""

    since: Annotated[AwareDatetime | None, Field(description="Since when the pool is idle. Absent if it is not.")] = (
        None
    )
    suspended: Annotated[
        bool | None, Field(description="true: the operator has suspended the pool, until it is used again.")
    ] = None
    wake_at: Annotated[
        Term | None,
        Field(description="The value of the annotation workergroups.dev/wake-at that the operator has seen."),
    ] = None


class ResourcePoolStatus(PoolSummary):
    """What was observed: the operator writes the conditions, the agent the reservation."""

    cluster_name: Annotated[Term | None, Field(description="Name of the RayCluster that the pool is part of.")] = None
    selector: Annotated[
        Message | None,
        Field(description="Label selector of the pods of the pool's nodes, for `kubectl` and autoscalers."),
    ] = None
    victims: Annotated[
        tuple[Victim, ...] | None,
        Field(
            max_length=MAX_VICTIMS,
            description="The groups that keep the pool from shrinking to `spec.nodes`; the first 16. Nodes with a "
            "group's ranks are never removed: the pool shrinks when these groups are deleted, or run on fewer nodes.",
            json_schema_extra=WHOLE,
        ),
    ] = None
    accelerators: Annotated[
        Message | None,
        Field(
            description="How many devices all nodes have together, and their product or else their resource, such as "
            "`16 x nvidia.com/gpu`; `none` for processes on CPUs."
        ),
    ] = None
    release: Annotated[
        Retries | None,
        Field(
            description="How often in a row the pool has given back its nodes because it did not get all of them in "
            "time (`onDeadline: Release`), and when the next try begins or began. Absent once it is ready."
        ),
    ] = None
    idle: Annotated[PoolIdle | None, Field(description="Whether the pool is in use. Absent without `spec.idle`.")] = (
        None
    )
    ray_version: Annotated[Term | None, Field(description="The version of Ray that was found in the nodes' image.")] = (
        None
    )
    drivers: Annotated[
        PoolDrivers | None,
        Field(
            description="Programs that use the pool's Ray cluster, such as jobs. Absent until the agent has counted "
            "them."
        ),
    ] = None
    roll: Annotated[
        Term | None,
        Field(
            description="Name of the last restart that began: a digest of the annotation "
            "workergroups.dev/restarted-at, and with RollingUpdate also of the nodes' template. Absent if the pool was "
            "never restarted."
        ),
    ] = None
    template: Annotated[
        Term | None, Field(description="Digest of the nodes' template from which pods have run. Absent if none has.")
    ] = None
    reservation: Annotated[PoolReport | None, Field(description="What the agent observes of the pool in Ray.")] = None
