"""What the Ray cluster holds, as the GCS knows it: nodes, our placement groups and rank actors, dead ones included.

The agent keeps no state of its own: the next agent finds the same state in Ray, and continues from there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from workergroups.announcements.runs import RunRecord
from workergroups.debugger.pauses import Pause
from workergroups.naming import PlacementName, RankName
from workergroups.ray_private.death import Death
from workergroups_agent.preflight_records import PreflightRecord
from workergroups_agent.weights_reader import RecordedWeights


@dataclass(frozen=True)
class JoinedNode:
    """A live Ray node, and the pod in which it runs."""

    id: str
    pod: str
    node_group: str | None


@dataclass(frozen=True)
class PlacementState:
    """One of our placement groups that is not removed."""

    name: PlacementName
    state: str
    scheduling_state: str


@dataclass(frozen=True)
class RankActor:
    """The actor of a rank; if several had its name, the latest."""

    name: RankName
    actor_id: str
    # Ray's state; ALIVE only once the constructor has returned.
    state: str
    node_id: str
    start_time: int = 0
    death: Death | None = None
    # The address of its Ray node and its process id there; None before it has a process.
    process: tuple[str, int] | None = None
    # Ray's id of the process; empty before it has one.
    worker_id: str = ""

    @property
    def is_alive(self) -> bool:
        """Whether its process runs or will start."""
        return self.state != "DEAD"


@dataclass(frozen=True)
class RayState:
    """The cluster at one time."""

    # The id of this life of the cluster.
    session: str
    nodes: Mapping[str, JoinedNode] = field(default_factory=dict)
    placements: tuple[PlacementState, ...] = ()
    ranks: tuple[RankActor, ...] = ()
    # Pod by node id, of dead nodes too, so that a report on a lost rank names its pod.
    pods: Mapping[str, str] = field(default_factory=dict)
    # Where ranks wait for a debugger or have one, by actor id; ranks that have died since are included.
    pauses: Mapping[str, Pause] = field(default_factory=dict)
    # What identifies the drivers that are connected, except our own and Ray's: the ids of their jobs.
    drivers: tuple[str, ...] = ()
    # When the last of those that have ended did so, in seconds since the epoch by the head's clock; None if none has.
    last_driver_end: float | None = None
    # How the checks of the pools' nodes went, by the pool's UID.
    preflights: Mapping[str, PreflightRecord] = field(default_factory=dict)
    # How far ranks are with the method that their group runs, by actor id; without ranks that have not begun.
    runs: Mapping[str, RunRecord] = field(default_factory=dict)
    # The incarnations that have notice, by their `incarnation_key`.
    noticed: frozenset[str] = frozenset()
    # Which weights ranks hold.
    weights: RecordedWeights = field(default_factory=RecordedWeights)
    # The id of the head's Ray node, and whether an earlier head began the session.
    head: str | None = None
    is_continued: bool = False
    # When the head started, by its clock, if nodes must look up its name to find it, since it has another address.
    moved_at: float | None = None
