"""The part of a status that tells whether the object is ready. A list of objects needs no more.

It is apart from the rest because a command that lists objects would spend a quarter of its time on the rest's models.
"""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from workergroups_api.conditions import Conditions
from workergroups_api.model import ApiModel


class StatusSummary(ApiModel):
    """What the statuses of pools and groups have in common."""

    conditions: Conditions = ()
    observed_generation: Annotated[
        int | None, Field(description="The generation of the spec that the operator last observed.")
    ] = None
    deadline: Annotated[
        datetime | None,
        Field(description="When the object must be ready. Absent if it is ready, or if waiting cannot make it ready."),
    ] = None


class PoolSummary(StatusSummary):
    """Whether a pool is ready, and how many of its nodes are."""

    nodes: Annotated[
        int | None,
        Field(
            description="Number of nodes that the pool should have now: `spec.nodes`, or more while it shrinks. "
            "`kubectl scale` and autoscalers read it."
        ),
    ] = None
    ready_nodes: Annotated[
        int | None,
        Field(
            description="Number of nodes that are ready now: all of their bundles are reserved, or they have "
            "joined Ray if the pool has `reservation: None`."
        ),
    ] = None


class GroupSummary(StatusSummary):
    """Whether a group is ready, and how many of its ranks are."""

    world_size: Annotated[int | None, Field(description="Number of ranks that the group should have.")] = None
    ready_ranks: Annotated[int | None, Field(description="Number of ranks that are ready now.")] = None
    incarnation: Annotated[
        int | None,
        Field(
            description="Number of the current set of ranks, from 1. It grows each time that the ranks are "
            "recreated and their memory is lost."
        ),
    ] = None
