"""Look at Ray. The actor table has no public reader without the dashboard, so this file reaches into `ray._private`."""

import time
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import ray
from ray._private import ray_constants
from ray._private.state import state as gcs
from ray.core.generated import gcs_pb2

from workergroups import deaths
from workergroups.debugger import pauses
from workergroups.naming import NAMESPACE, NODE_GROUP_LABEL, PlacementName, RankName
from workergroups_agent.executor.ray_state import Placement, Rank, RayNode, RayState

READ_ALL_SECONDS = 1.0

Parsed = TypeVar("Parsed")


class SessionEnded(Exception):
    """The Ray cluster is not the one that this process joined, or has given this process up."""


class Observer:
    """Asks the GCS of the cluster that this process joined, and of no other."""

    def __init__(self) -> None:
        self._client = ray._private.worker.global_worker.gcs_client
        self.session: str = self._client.cluster_id.hex()
        self._own_node = ray.get_runtime_context().get_node_id()
        self._session_name = self._read_session_name()
        self._placements = _Parser(_placement)
        self._ranks = _RankTable()

    def look(self, *, launching: bool = False) -> RayState:
        """A few questions to the GCS; waits for as long as it does not answer.

        Args:
            launching: Whether a task of this executor creates ranks, or has just done so.

        Raises:
            SessionEnded: Another GCS answers, or this one does not know this process's node any more.
        """
        if self._read_session_name() != self._session_name:
            raise SessionEnded("the GCS is another one")
        table = self._client.get_all_node_info().values()
        nodes = {info.node_id.hex(): _node(info) for info in table if info.state == gcs_pb2.GcsNodeInfo.ALIVE}
        if self._own_node not in nodes:
            raise SessionEnded("the GCS does not know the agent's own Ray node, or counts it as dead")
        accessor = gcs._connect_and_get_accessor()
        ranks = self._ranks.read(accessor, launching)
        return RayState(
            session=self.session,
            nodes=nodes,
            placements=tuple(self._placements.parse(accessor.get_placement_group_table())),
            ranks=ranks,
            pods={info.node_id.hex(): _pod_of(info) for info in table},
            pauses=pauses.announced(rank.actor_id for rank in ranks),
        )

    def _read_session_name(self) -> Any:
        return self._client.internal_kv_get(b"session_name", ray_constants.KV_NAMESPACE_SESSION)


class _RankTable:
    """The ranks, dead ones included.

    The GCS remembers every actor that ever was, so the whole table is read only when there can be something new in it:
    a rank that lives is not as it was, or is still to come up. And now and then, for ranks that an earlier executor's
    launch creates.
    """

    def __init__(self) -> None:
        self._parser = _Parser(_rank)
        self._alive: list[bytes] = []
        self._ranks: tuple[Rank, ...] = ()
        self._read_all = -READ_ALL_SECONDS

    def read(self, accessor: Any, launching: bool) -> tuple[Rank, ...]:
        now = time.monotonic()
        alive = sorted(accessor.get_actor_table(None, "ALIVE"))
        is_settled = all(rank.state in ("ALIVE", "DEAD") for rank in self._ranks)
        if launching or not is_settled or alive != self._alive or now - self._read_all >= READ_ALL_SECONDS:
            self._ranks = _latest(self._parser.parse(accessor.get_actor_table(None, None)))
            self._alive, self._read_all = alive, now
        return self._ranks


class _Parser(Generic[Parsed]):
    """Parses the GCS's records; one that has not changed is not parsed again."""

    def __init__(self, parse: Callable[[bytes], Parsed | None]) -> None:
        self._parse = parse
        self._known: dict[bytes, Parsed | None] = {}

    def parse(self, records: Iterable[bytes]) -> list[Parsed]:
        self._known = {raw: self._known[raw] if raw in self._known else self._parse(raw) for raw in records}
        return [parsed for parsed in self._known.values() if parsed is not None]


def _node(info: gcs_pb2.GcsNodeInfo) -> RayNode:
    return RayNode(info.node_id.hex(), _pod_of(info), info.labels.get(NODE_GROUP_LABEL))


def _pod_of(info: gcs_pb2.GcsNodeInfo) -> str:
    """KubeRay names the pod to Ray. Its host's name is another one with `hostNetwork`, or when a template sets it."""
    return str(info.instance_id or info.node_manager_hostname)


def _placement(raw: bytes) -> Placement | None:
    record = gcs_pb2.PlacementGroupTableData.FromString(raw)
    name = PlacementName.parse(record.name)
    state = gcs_pb2.PlacementGroupTableData.PlacementGroupState.Name(record.state)
    if name is None or record.ray_namespace != NAMESPACE or state == "REMOVED":
        return None
    scheduling_state = gcs_pb2.PlacementGroupStats.SchedulingState.Name(record.stats.scheduling_state)
    return Placement(name, state, scheduling_state)


def _rank(raw: bytes) -> Rank | None:
    record = gcs_pb2.ActorTableData.FromString(raw)
    name = RankName.parse(record.name)
    if name is None or record.ray_namespace != NAMESPACE:
        return None
    state = _state_of(record)
    death = deaths.decode(record.death_cause) if state == "DEAD" else None
    process = (record.address.ip_address, record.pid) if record.pid else None
    node_id = record.address.node_id.hex()
    return Rank(name, record.actor_id.hex(), state, node_id, record.start_time, death, process)


def _state_of(record: gcs_pb2.ActorTableData) -> str:
    """Ray calls an actor alive for a moment though its constructor raised; the name to show comes with its return."""
    state = gcs_pb2.ActorTableData.ActorState.Name(record.state)
    return "CONSTRUCTOR_RAISED" if state == "ALIVE" and not record.repr_name else state


def _latest(ranks: Iterable[Rank]) -> tuple[Rank, ...]:
    """Of several with one name the one that lives, or else the one that started last."""
    latest: dict[RankName, Rank] = {}
    for rank in ranks:
        known = latest.get(rank.name)
        if known is None or (rank.is_alive, rank.start_time) > (known.is_alive, known.start_time):
            latest[rank.name] = rank
    return tuple(latest.values())
