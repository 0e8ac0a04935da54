"""Ray as the agent's executor sees it: lives of the GCS, with nodes, placement groups and rank actors.

This is the simulation's truth, with which statuses are compared.
"""

import secrets
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from workergroups.announcements.runs import RunRecord, RunStep
from workergroups.debugger.pauses import Pause
from workergroups.naming import RankName
from workergroups_agent.preflight_records import PreflightRecord
from workergroups_api.conditions import Explanation
from workergroups_api.launch import Launch
from workergroups_api.report import HangReport
from workergroups_common.ranges import ranges


@dataclass
class Node:
    """A live Ray node, which is a container of a pod."""

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
    # When it ends, once it was told that it will; by the monotonic clock.
    ends_at: float | None = None

    @property
    def is_alive(self) -> bool:
        """Whether its process runs or will start."""
        return self.state != "DEAD"


def class_paths(launch: Launch) -> list[str]:
    """Return the classes of which each rank has an instance."""
    return [role.class_path for role in launch.roles] if launch.roles else [str(launch.class_path)]


@dataclass
class Gcs:
    """A Ray session: one life of Ray's head, or several if its state is kept."""

    token: str | None
    head_pod: str
    head_uid: str
    # The head's node, another one in each of its lives.
    head: str = field(default_factory=lambda: secrets.token_hex(14))
    session: str = field(default_factory=lambda: secrets.token_hex(14))
    nodes: dict[str, Node] = field(default_factory=dict)
    # Pod by node id, of dead nodes too.
    pods: dict[str, str] = field(default_factory=dict)
    placements: dict[str, Placement] = field(default_factory=dict)
    ranks: dict[str, Rank] = field(default_factory=dict)
    # Group -> UID and incarnation that the executor announced, and whether it is final.
    announced: dict[str, tuple[str, int, bool]] = field(default_factory=dict)
    # Ranks that wait for a debugger, by actor id.
    pauses: dict[str, Pause] = field(default_factory=dict)
    # Calls that hang, by UID and incarnation.
    hangs: dict[tuple[str, int], HangReport] = field(default_factory=dict)
    # How far ranks are with the methods that their groups run, by name.
    runs: dict[str, RunRecord] = field(default_factory=dict)
    # The ids of the jobs whose drivers are connected.
    drivers: list[str] = field(default_factory=list)
    last_driver_end: float | None = None
    # The latest checks of pools' nodes, by the pool's UID, and what is wrong with the nodes of pods.
    preflights: dict[str, PreflightRecord] = field(default_factory=dict)
    unfit: dict[str, str] = field(default_factory=dict)
    # What the agent did to ranks that had notice, or should have had it.
    rude: list[str] = field(default_factory=list)
    # Failed launches, by UID and incarnation.
    failed: dict[tuple[str, int], Explanation] = field(default_factory=dict)

    def join(self, pod: str, pod_uid: str, node_group: str | None) -> Node:
        """Add a node."""
        node = Node(secrets.token_hex(14), pod, pod_uid, node_group)
        self.nodes[node.id] = node
        self.pods[node.id] = pod
        return node

    def come_back(self) -> "Gcs":
        """Return the session in the head's next life, which has all but the drivers."""
        self.drivers.clear()
        return replace(self, head=secrets.token_hex(14), last_driver_end=None)

    def lose(self, pod_uid: str) -> None:
        """End the nodes of a pod, with their ranks and placement groups."""
        for node in [node for node in self.nodes.values() if node.pod_uid == pod_uid]:
            del self.nodes[node.id]
            self.placements = {name: p for name, p in self.placements.items() if p.node_id != node.id}
            for rank in self.ranks.values():
                if rank.node_id == node.id and rank.is_alive:
                    rank.state, rank.cause = "DEAD", "NodeLost"

    def kill(self, rank: Rank, cause: str = "ProcessDied") -> None:
        """End one rank."""
        rank.state, rank.cause = "DEAD", cause

    def end(self, rank: Rank, seconds: float | None) -> None:
        """End a rank from the agent: so long after it was told, or at once without a word."""
        if seconds is not None:
            rank.ends_at = rank.ends_at or time.monotonic() + seconds
            return
        if rank.ends_at is not None:
            self.rude.append(f"rank {rank.name} was ended before it had answered its notice")
        elif self._is_well(rank):
            self.rude.append(f"rank {rank.name} ended without a notice")
        self.kill(rank, "Removed")

    @property
    def noticed(self) -> frozenset[str]:
        """The incarnations that have notice."""
        ranks = self.ranks.values()
        return frozenset(rank.name.incarnation_key for rank in ranks if rank.is_alive and rank.ends_at is not None)

    def _is_well(self, rank: Rank) -> bool:
        """Return whether all ranks of the incarnation are ready, and none of them has failed."""
        name = rank.name
        ranks = self.ranks_of(name.uid, name.incarnation)
        alive = [each for each in ranks.values() if each.state == "ALIVE" and not self.has_raised(each)]
        has_ended = all(self.runs.get(str(each.name), RunRecord(RunStep.BEGUN)).has_ended for each in ranks.values())
        is_hanging = (name.uid, name.incarnation) in self.hangs
        return len(alive) == name.world_size and name.birth == 0 and not is_hanging and not has_ended

    def end_the_told(self) -> None:
        """End the ranks whose time is over."""
        for rank in self.ranks.values():
            if rank.is_alive and rank.ends_at is not None and rank.ends_at < time.monotonic():
                self.kill(rank, "Removed")

    def pause(self, rank: Rank) -> None:
        """Pause a rank for a debugger."""
        self.pauses[str(rank.name)] = Pause(
            node_id=rank.node_id, file="train.py", line=1, function="f", directory="", error="", port=1, since=1e9
        )

    def hang(self, rank: Rank) -> None:
        """Let a call of the rank's group hang, for which this rank is to blame."""
        self.hangs[rank.name.uid, rank.name.incarnation] = HangReport(
            method="step",
            since=datetime(2026, 1, 1, tzinfo=UTC),
            ranks=ranges(range(rank.name.world_size)),
            suspects=str(rank.name.rank),
            pod=rank.pod,
            message=f"call `step` hangs; suspect: rank {rank.name.rank}",
        )

    def end_run(self, rank: Rank, error: str | None = None) -> None:
        """Let the method of a rank's run return, or raise an exception."""
        self.runs[str(rank.name)] = RunRecord(RunStep.RETURNED) if error is None else RunRecord(RunStep.RAISED, error)

    def is_running(self, rank: Rank) -> bool:
        """Whether the method that the rank's group runs has begun on it, and has not ended."""
        record = self.runs.get(str(rank.name))
        return record is not None and not record.has_ended

    def has_raised(self, rank: Rank) -> bool:
        """Whether the method that the rank's group runs has raised an exception on it."""
        record = self.runs.get(str(rank.name))
        return record is not None and record.step is RunStep.RAISED

    def remove_placement(self, name: str) -> None:
        """Release bundles, and end what runs in them, as Ray does."""
        placement = self.placements.pop(name, None)
        for rank in self.ranks.values():
            if placement and rank.node_id == placement.node_id and rank.is_alive and rank.name.uid:
                self.end(rank, None)

    def ranks_of(self, uid: str, incarnation: int | None = None) -> dict[int, Rank]:
        """Return the ranks of a group by number, of one incarnation or of any: of each rank the latest birth."""
        return {
            rank.name.rank: rank
            for rank in self.ranks.values()  # in the order of their creation
            if rank.name.uid == uid and incarnation in (None, rank.name.incarnation)
        }
