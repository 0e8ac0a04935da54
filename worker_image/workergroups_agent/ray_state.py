"""What is in the Ray cluster, straight from the GCS: nodes, our placement groups, our rank actors, dead ones included.

Ray's memory is the agent's memory: whatever agent runs next finds the same state here and goes on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from workergroups.deaths import Death
from workergroups.debugger.pauses import Pause
from workergroups.naming import PlacementName, RankName


@dataclass(frozen=True)
class RayNode:
    """A live Ray node, and the pod in which it runs."""

    id: str
    pod: str
    node_group: str | None


@dataclass(frozen=True)
class Placement:
    """A placement group of ours that is not removed."""

    name: PlacementName
    state: str
    scheduling_state: str


@dataclass(frozen=True)
class RankActor:
    """A rank actor; of several with one name, the latest."""

    name: RankName
    actor_id: str
    # As Ray has it; ALIVE only once the constructor has returned.
    state: str
    node_id: str
    start_time: int = 0
    death: Death | None = None
    # The address of its Ray node and its process id there; None before it has a process.
    process: tuple[str, int] | None = None

    @property
    def is_alive(self) -> bool:
        """Whether its process runs or is still to start."""
        return self.state != "DEAD"


@dataclass(frozen=True)
class RayState:
    """The cluster at one time."""

    # Which life of the cluster this is.
    session: str
    nodes: Mapping[str, RayNode] = field(default_factory=dict)
    placements: tuple[Placement, ...] = ()
    ranks: tuple[RankActor, ...] = ()
    # Pod by node id, of dead nodes too: a lost rank still says where it was.
    pods: Mapping[str, str] = field(default_factory=dict)
    # By actor id, of ranks that wait for a debugger or have one, and of such as have died since.
    pauses: Mapping[str, Pause] = field(default_factory=dict)
