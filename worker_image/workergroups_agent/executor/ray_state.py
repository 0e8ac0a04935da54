"""What is in the Ray cluster, straight from the GCS: nodes, our placement groups, our rank actors, dead ones included.

Ray's memory is the agent's only memory: whatever agent runs next finds the same state here and goes on.
The actor table has no public reader without the dashboard, so this file alone reaches into `ray._private`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import ray
from ray._private.state import state as gcs
from ray.util.placement_group import placement_group_table

from workergroups.last_line import last_line
from workergroups.naming import RankName
from workergroups_agent.executor.placement_name import PlacementName
from workergroups_api.report import FailureReason

NODE_GROUP_LABEL = "ray.io/node-group"


@dataclass(frozen=True)
class RayNode:
    """A live Ray node. In a pod, the host name is the pod's name."""

    id: str
    host: str
    node_group: str | None


@dataclass(frozen=True)
class Placement:
    """A placement group of ours that is not removed."""

    name: PlacementName
    state: str
    scheduling_state: str


@dataclass(frozen=True)
class Death:
    """Why a rank's process is gone, in Ray's words."""

    reason: FailureReason
    message: str


@dataclass(frozen=True)
class Rank:
    """A rank actor; of several with one name, the latest."""

    name: RankName
    state: str
    node_id: str
    death: Death | None = None

    @property
    def is_alive(self) -> bool:
        """Whether its process runs or is still to start."""
        return self.state != "DEAD"


@dataclass(frozen=True)
class RayState:
    """The cluster at one time."""

    nodes: Mapping[str, RayNode] = field(default_factory=dict)
    placements: tuple[Placement, ...] = ()
    ranks: tuple[Rank, ...] = ()
    # Host by node id, of dead nodes too: a lost rank still says where it was.
    hosts: Mapping[str, str] = field(default_factory=dict)


def observe() -> RayState:
    """Three questions to the GCS."""
    table = ray.nodes()
    return RayState(
        nodes={raw["NodeID"]: _node(raw) for raw in table if raw["Alive"]},
        placements=tuple(_placements(placement_group_table())),
        ranks=tuple(_ranks(gcs.actor_table(None))),
        hosts={raw["NodeID"]: raw["NodeManagerHostname"] for raw in table},
    )


def _node(raw: Mapping[str, Any]) -> RayNode:
    return RayNode(raw["NodeID"], raw["NodeManagerHostname"], raw["Labels"].get(NODE_GROUP_LABEL))


def _placements(table: Mapping[str, Any]) -> list[Placement]:
    found = []
    for raw in table.values():
        name = PlacementName.parse(raw["name"])
        if name is not None and raw["state"] != "REMOVED":
            found.append(Placement(name, raw["state"], raw["stats"]["scheduling_state"]))
    return found


def _ranks(table: Mapping[str, Any]) -> list[Rank]:
    latest: dict[RankName, tuple[float, Rank]] = {}
    for raw in table.values():
        name = RankName.parse(raw["Name"])
        if name is None:
            continue
        rank = Rank(name, raw["State"], raw["Address"]["NodeID"], _death(raw))
        age = (float(rank.is_alive), float(raw["StartTime"]))
        if name not in latest or age > (float(latest[name][1].is_alive), latest[name][0]):
            latest[name] = (float(raw["StartTime"]), rank)
    return [rank for _, rank in latest.values()]


def _death(raw: Mapping[str, Any]) -> Death | None:
    if raw["State"] != "DEAD":
        return None
    cause = raw["DeathCause"]
    kind = cause.WhichOneof("context")
    if kind == "creation_task_failure_context":
        # The text only: the pickled exception is the user's, and nothing of the user's is loaded here.
        return Death("ConstructorFailed", last_line(cause.creation_task_failure_context.formatted_exception_string))
    if kind == "oom_context":
        return Death("OutOfMemory", cause.oom_context.error_message)
    message = getattr(getattr(cause, kind, None), "error_message", "") if kind else ""
    return Death(_reason(message), brief(message) or "Ray does not say why")


# What Ray's sentence holds -> what it means; the first that fits.
_REASONS: tuple[tuple[str, FailureReason], ...] = (
    ("killed by `ray.kill`", "Removed"),
    ("placement group was removed", "Removed"),
    ("memory running low", "OutOfMemory"),
    ("its node has died", "NodeLost"),
)


def _reason(message: str) -> FailureReason:
    return next((reason for words, reason in _REASONS if words in message), "ProcessDied")


def brief(message: str) -> str:
    """Ray's account of a death, without what it says of every death."""
    if "connection error code 2. End of file" in message:
        return "its process ended without telling Ray: it was killed (SIGKILL, or by the kernel for memory) or crashed"
    return message.rpartition("Worker exit detail: ")[2].strip()
