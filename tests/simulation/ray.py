"""Ray as far as the agent's executor sees it: lives of the GCS, their nodes, placement groups and rank actors.

This is the simulator's truth: what a status claims is compared with it.
"""

import secrets
from dataclasses import dataclass, field
from typing import Any

from workergroups.debugger.pauses import Pause
from workergroups.naming import RankName
from workergroups_api.conditions import Explanation
from workergroups_api.launch import Launch


@dataclass
class Node:
    """A live Ray node: a container of a pod."""

    id: str
    pod: str
    pod_uid: str
    node_group: str | None


@dataclass
class Placement:
    """A placement group on one node."""

    name: Any
    node_id: str


@dataclass
class Rank:
    """An actor, and what it was made from."""

    name: RankName
    node_id: str
    pod: str
    revision: str | None
    launch: Launch
    state: str = "PENDING_CREATION"
    cause: str | None = None
    made_at: float = 0.0

    @property
    def is_alive(self) -> bool:
        """Whether its process runs or is to start."""
        return self.state != "DEAD"


def class_paths(launch: Launch) -> list[str]:
    """Return the classes of which each rank has an instance."""
    return [role.class_path for role in launch.roles] if launch.roles else [str(launch.class_path)]


@dataclass
class Gcs:
    """One life of Ray's head: everything ends with it."""

    token: str | None
    head_pod: str
    head_uid: str
    session: str = field(default_factory=lambda: secrets.token_hex(14))
    nodes: dict[str, Node] = field(default_factory=dict)
    # Pod by node id, of dead nodes too.
    pods: dict[str, str] = field(default_factory=dict)
    placements: dict[str, Placement] = field(default_factory=dict)
    ranks: dict[str, Rank] = field(default_factory=dict)
    # Group -> UID and incarnation that the executor announced.
    announced: dict[str, tuple[str, int]] = field(default_factory=dict)
    # Ranks that wait for a debugger, by actor id.
    pauses: dict[str, Pause] = field(default_factory=dict)
    # Launches that failed, by UID and incarnation.
    failed: dict[tuple[str, int], Explanation] = field(default_factory=dict)

    def join(self, pod: str, pod_uid: str, node_group: str | None) -> Node:
        """A new node."""
        node = Node(secrets.token_hex(14), pod, pod_uid, node_group)
        self.nodes[node.id] = node
        self.pods[node.id] = pod
        return node

    def lose(self, pod_uid: str) -> None:
        """The nodes of a pod are dead, and so are their ranks and placement groups."""
        for node in [node for node in self.nodes.values() if node.pod_uid == pod_uid]:
            del self.nodes[node.id]
            self.placements = {name: p for name, p in self.placements.items() if p.node_id != node.id}
            for rank in self.ranks.values():
                if rank.node_id == node.id and rank.is_alive:
                    rank.state, rank.cause = "DEAD", "NodeLost"

    def kill(self, rank: Rank, cause: str = "ProcessDied") -> None:
        """End one rank."""
        rank.state, rank.cause = "DEAD", cause

    def pause(self, rank: Rank) -> None:
        """Have a rank wait for a debugger."""
        self.pauses[str(rank.name)] = Pause(
            node_id=rank.node_id, file="train.py", line=1, function="f", directory="", error="", port=1, since=1e9
        )

    def remove_placement(self, name: str) -> None:
        """Give bundles back; Ray ends what runs in them."""
        placement = self.placements.pop(name, None)
        for rank in self.ranks.values():
            if placement and rank.node_id == placement.node_id and rank.is_alive and rank.name.uid:
                rank.state, rank.cause = "DEAD", "Removed"

    def ranks_of(self, uid: str, incarnation: int | None = None) -> dict[int, Rank]:
        """Ranks of a group by number, of one incarnation or of any."""
        return {
            rank.name.rank: rank
            for rank in self.ranks.values()
            if rank.name.uid == uid and incarnation in (None, rank.name.incarnation)
        }
