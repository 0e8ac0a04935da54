"""What the agent says of Ray: `status.reservation` of a pool, `status.ranks` of a group; its own subtrees.

Each report names the Ray session in which it was seen, and a group's also the incarnation: what was seen in another
session or of another incarnation says nothing about this one.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from pydantic import Field

from workergroups_api.launch import digest
from workergroups_api.model import ApiModel, list_map

MAX_NODES = 16
MAX_FAILURES = 10
MAX_PAUSES = 64

Session = Annotated[str | None, Field(description="The Ray session in which this was seen.")]


class NodeReport(ApiModel):
    """A node of a pool that is not reserved."""

    index: Annotated[int, Field(description="The node's place in the pool, from 0.")]
    state: Annotated[str, Field(description="Waiting for a Ray node, or Reserving its bundles.")]
    pod: Annotated[str | None, Field(description="The node's pod, once it has joined Ray.")] = None
    message: Annotated[str | None, Field(description="What is wrong, if something is.")] = None


class PoolReport(ApiModel):
    """A pool's placement groups, as the GCS has them."""

    session: Session = None
    joined_nodes: Annotated[int, Field(description="Live Ray nodes of the pool.")] = 0
    joined_pods: Annotated[
        str | None, Field(description="Digest of the names of these nodes' pods: which pods the report is about.")
    ] = None
    reserved_nodes: Annotated[int, Field(description="Nodes whose bundles are all reserved.")] = 0
    reserved: Annotated[str, Field(description="The reserved nodes as ranges, counted from 0: `0-510`.")] = ""
    nodes: Annotated[
        tuple[NodeReport, ...],
        Field(
            max_length=MAX_NODES,
            description="The first nodes that are not reserved.",
            json_schema_extra=dict(list_map("index")),
        ),
    ] = ()
    message: Annotated[str | None, Field(description="Why the reservation fails; absent if it does not.")] = None


class RankFailure(ApiModel):
    """Why a rank is not there."""

    rank: Annotated[int, Field(description="The rank within its group.")]
    reason: Annotated[
        str, Field(description="What ended it: ConstructorFailed, ProcessDied, OutOfMemory, NodeLost or Removed.")
    ]
    message: Annotated[str, Field(description="The exception's last line, or Ray's account.")]
    pod: Annotated[str | None, Field(description="The pod in which it was.")] = None


class RankPause(ApiModel):
    """Where a rank waits for a debugger, or has one."""

    rank: Annotated[int, Field(description="The rank within its group.")]
    pod: Annotated[str | None, Field(description="The pod in which it is.")] = None
    where: Annotated[str, Field(description="File, line and function, and the exception that was raised there.")]
    directory: Annotated[str | None, Field(description="The directory from which Python imported that file.")] = None
    port: Annotated[
        int | None, Field(description="Where debugpy listens, on the loopback of the pod; absent until it does.")
    ] = None
    since: Annotated[datetime, Field(description="When it stopped, by the clock of its node.")]
    attached: Annotated[bool, Field(description="Whether a debugger is connected to it.")] = False


class GroupReport(ApiModel):
    """A group's rank actors, as the GCS has them."""

    session: Session = None
    incarnation: Annotated[int, Field(description="Which making of the ranks this is about.")] = 0
    state: Annotated[
        str,
        Field(
            description="How far the agent is with this incarnation: WaitingForPools, WaitingForCode, Launching, "
            "Launched, LaunchFailed, or LaunchInterrupted, when it was cut short and some ranks are left."
        ),
    ] = "WaitingForPools"
    code: Annotated[
        str | None, Field(description="Digest of the code ConfigMap's present content; absent if there is none.")
    ] = None
    created: Annotated[int, Field(description="Actors that exist, their constructors done or not.")] = 0
    ready_count: Annotated[int, Field(description="Ranks whose constructor is done.")] = 0
    ready: Annotated[str, Field(description="The same as ranges: `0-2,5`.")] = ""
    message: Annotated[str | None, Field(description="Why the launch fails or waits; absent if it does not.")] = None
    failures: Annotated[
        tuple[RankFailure, ...],
        Field(
            max_length=MAX_FAILURES, description="The first ranks that died.", json_schema_extra=dict(list_map("rank"))
        ),
    ] = ()
    paused: Annotated[str, Field(description="Ranks that wait for a debugger, or have one, as ranges.")] = ""
    pauses: Annotated[
        tuple[RankPause, ...],
        Field(
            max_length=MAX_PAUSES,
            description="The first ranks that wait for a debugger, or have one.",
            json_schema_extra=dict(list_map("rank")),
        ),
    ] = ()


def pods_digest(pods: Iterable[str]) -> str:
    """A short name for a set of pods."""
    return digest(sorted(pods))


def ranges(numbers: Iterable[int]) -> str:
    """Numbers as ranges: [0, 1, 2, 5] -> `0-2,5`."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)
