"""What Ray's control service (the GCS) knows about nodes, actors and placement groups.

The questions go to the GCS itself: Ray's public state API needs the dashboard, and is capped. So this is the one module
that uses Ray's private state accessor.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import ray._private.state
from ray.util.placement_group import PlacementGroup, placement_group_table


@dataclass(frozen=True)
class NodeResources:
    """One live node: its resources in all, and what no placement group or actor holds."""

    node_id: str
    address: str
    total: dict[str, float]
    available: dict[str, float]


@dataclass(frozen=True)
class ActorState:
    """One actor as the GCS sees it."""

    state: str
    """DEPENDENCIES_UNREADY, PENDING_CREATION, ALIVE (its constructor returned), RESTARTING or DEAD."""
    pid: int
    """The process id on its node; 0 before there is a process."""
    node_address: str
    node_id: str
    start_time: float
    """When its process was up, in milliseconds since the epoch."""
    death_cause: str
    """Empty unless dead; the last line is the constructor's exception, if that was the cause."""


def live_nodes() -> list[NodeResources]:
    """All live nodes of the cluster."""
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
    """The actor with that hexadecimal id; ``None`` when the GCS does not know it."""
    found = ray._private.state.actors(actor_id)
    if not found:
        return None
    return ActorState(
        state=found["State"],
        pid=found["Pid"],
        node_address=found["Address"]["IPAddress"],
        node_id=found["Address"]["NodeID"],
        start_time=found["StartTime"],
        death_cause=_death_cause(found["DeathCause"]),
    )


def _death_cause(cause: Any) -> str:
    """The text in the GCS's record of a death, whichever of its variants is set."""
    kind = cause.WhichOneof("context")
    if kind is None:
        return ""
    context = getattr(cause, kind)
    text: str
    if kind == "creation_task_failure_context":
        # Ray appends its own account of the first traceback, which repeats the exception.
        text = context.formatted_exception_string.split("\n\n\nDuring handling of the above")[0]
    else:
        text = context.error_message
    return text.strip()


def node_of_bundles(placement_group: PlacementGroup) -> dict[int, str]:
    """The node id of each bundle of a placed group, by bundle index."""
    nodes: dict[int, str] = placement_group_table(placement_group)["bundles_to_node_id"]
    return nodes


def is_removed(placement_group: PlacementGroup) -> bool:
    """Whether the GCS has taken the placement group away."""
    return bool(placement_group_table(placement_group).get("state") == "REMOVED")


def all_dead(actor_ids: Iterable[str]) -> bool:
    """Whether none of these actors runs any more."""
    states = (actor_state(actor_id) for actor_id in actor_ids)
    return all(state is None or state.state == "DEAD" for state in states)
