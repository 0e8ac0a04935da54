"""What the agent says of Ray: `status.reservation` of a pool, `status.ranks` of a group; its own subtrees."""

from typing import Annotated, Literal

from pydantic import Field

from workergroups_api.model import ApiModel, list_map


class NodeReport(ApiModel):
    """One entry of a pool's `processesPerNode`."""

    index: int
    state: Annotated[
        Literal["Waiting", "Reserving", "Reserved"],
        Field(description="Waiting for a Ray node, reserving its bundles, or reserved."),
    ]
    pod: str | None = None
    message: str | None = None


class PoolReport(ApiModel):
    """A pool's placement groups, as the GCS has them."""

    observed_generation: int = 0
    joined_nodes: Annotated[int, Field(description="Live Ray nodes of the pool.")] = 0
    reserved_bundles: int = 0
    total_bundles: int = 0
    message: Annotated[str | None, Field(description="Why the reservation fails; absent if it does not.")] = None
    nodes: Annotated[tuple[NodeReport, ...], Field(max_length=512, json_schema_extra=dict(list_map("index")))] = ()


FailureReason = Literal["ConstructorFailed", "ProcessDied", "OutOfMemory", "NodeLost", "Removed"]


class RankFailure(ApiModel):
    """Why a rank is not there."""

    rank: int
    reason: Annotated[FailureReason, Field(description="What ended it.")]
    message: str
    pod: str | None = None


class GroupReport(ApiModel):
    """A group's rank actors, as the GCS has them."""

    observed_generation: int = 0
    incarnation: int = 0
    state: Annotated[
        Literal["WaitingForPools", "WaitingForCode", "Launching", "Launched", "LaunchFailed"],
        Field(description="How far the agent is with this incarnation."),
    ] = "WaitingForPools"
    total: int = 0
    created: Annotated[int, Field(description="Actors that exist, their constructors done or not.")] = 0
    ready_count: int = 0
    ready: Annotated[str, Field(description="Ranks whose constructor is done, as ranges: `0-2,5`.")] = ""
    message: Annotated[str | None, Field(description="Why the launch fails or waits; absent if it does not.")] = None
    failures: Annotated[
        tuple[RankFailure, ...],
        Field(max_length=10, description="At most ten.", json_schema_extra=dict(list_map("rank"))),
    ] = ()


def ranges(numbers: list[int]) -> str:
    """Sorted numbers as ranges: [0, 1, 2, 5] -> `0-2,5`."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)
