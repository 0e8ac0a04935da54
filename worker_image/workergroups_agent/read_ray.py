"""Read nodes, our placement groups and our rank actors from the GCS's records.

Users may have any number of actors and placement groups, with any names. Their records are dropped before they are
parsed if possible. A record that cannot be parsed is not ours.
"""

import hashlib
import socket
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from workergroups.announcements import notices, runs
from workergroups.debugger import announced
from workergroups.debugger.pauses import Pause
from workergroups.naming import NAMESPACE, PlacementName, RankName
from workergroups.ray_private import records
from workergroups.ray_private.death import Death
from workergroups.ray_private.gcs import Gcs, SessionEnded
from workergroups_agent.preflight_records import PreflightReader
from workergroups_agent.ray_state import JoinedNode, PlacementState, RankActor, RayState
from workergroups_agent.weights_reader import WeightsReader
from workergroups_common.text import plain

READ_ALL_SECONDS = 1.0
# The GCS remembers a thousand drivers that have ended.
READ_DRIVERS_SECONDS = 1.0
# Kubernetes' limit of a pod's name.
MAX_POD_NAME = 253
# Of an exception's text.
MAX_MESSAGE = 1024
# Of the id that a user has given to a job.
MAX_JOB_ID = 128

# Each record of ours contains these bytes; records of users' actors seldom do.
_IN_RANK_NAMES = b"-of-"
_IN_PLACEMENT_NAMES = b"/"

Parsed = TypeVar("Parsed")


class RayReader:
    """Looks at one GCS, again and again."""

    def __init__(self, gcs: Gcs, own_node: str | None = None) -> None:
        """Args:
        gcs: The GCS to read.
        own_node: The id of this process's Ray node, if it is on one.
        """
        self._gcs = gcs
        self._own_node = own_node
        self._placements = _Parser(_placement, _IN_PLACEMENT_NAMES)
        self._ranks = _RankTable(gcs)
        self._drivers = _DriverTable(gcs)
        self._preflights = PreflightReader(gcs)
        self._weights = WeightsReader(gcs)
        # How far ranks were with the method that their group runs, by actor id.
        self._runs: dict[str, runs.RunRecord] = {}
        # Whether nodes find the present head by a name, by the head's id.
        self._named: dict[str, bool] = {}

    def look(self, *, launching: bool = False, checked: Collection[str] = ()) -> RayState:
        """Ask the GCS a few questions; return what the cluster holds.

        Args:
            launching: Whether ranks are being created, or have just been.
            checked: The UIDs of the pools whose nodes are checked.

        Raises:
            SessionEnded: Another GCS answers, or this one no longer knows this process's node.
            Exception: The GCS does not answer in time.
        """
        self._gcs.check_session()
        table = [records.node(info) for info in self._gcs.nodes()]
        nodes = {
            record.id: JoinedNode(record.id, _pod_of(record), record.node_group) for record in table if record.is_alive
        }
        if self._own_node is not None and self._own_node not in nodes:
            raise SessionEnded("the GCS does not know this process's Ray node, or counts it as dead")
        ranks = self._ranks.read(launching)
        heads = _heads(table)
        drivers = self._drivers.read([each.id for each in heads[:-1]])
        has_moved = len(heads) > 1 and heads[-1].address != heads[-2].address and self._is_named(heads)
        return RayState(
            session=self._gcs.session,
            nodes=nodes,
            placements=tuple(self._placements.parse(self._gcs.placement_groups())),
            ranks=ranks,
            pods={record.id: _pod_of(record) for record in table},
            pauses=self._pauses({rank.actor_id for rank in ranks}),
            head=heads[-1].id if heads else None,
            is_continued=len(heads) > 1,
            moved_at=heads[-1].started if has_moved else None,
            drivers=drivers.connected,
            last_driver_end=drivers.last_end,
            preflights=self._preflights.read(checked),
            runs=self._read_runs({rank.actor_id for rank in ranks}),
            noticed=notices.of_incarnations(self._gcs),
            weights=self._weights.read({rank.actor_id for rank in ranks}),
        )

    def _is_named(self, heads: Sequence[records.NodeRecord]) -> bool:
        """Return whether nodes find the head by a name that stands for its own address, instead of one that stays."""
        if heads[-1].id not in self._named:
            self._named = {heads[-1].id: is_named(self._gcs.address, {each.address for each in heads})}
        return self._named[heads[-1].id]

    def _pauses(self, actor_ids: set[str]) -> dict[str, Pause]:
        paused = actor_ids.intersection(self._gcs.keys(announced.KV_NAMESPACE))
        written = self._gcs.get_many(announced.KV_NAMESPACE, paused)
        found = {actor_id: announced.read(data) for actor_id, data in sorted(written.items())}
        return {actor_id: pause for actor_id, pause in found.items() if pause is not None}

    def _read_runs(self, actor_ids: set[str]) -> dict[str, runs.RunRecord]:
        """Return the records of these ranks. One that has ended does not change, and is not read again."""
        recorded = actor_ids.intersection(self._gcs.keys(runs.KV_NAMESPACE))
        kept = {actor_id: run for actor_id, run in self._runs.items() if run.has_ended and actor_id in recorded}
        written = self._gcs.get_many(runs.KV_NAMESPACE, recorded - kept.keys())
        found = {actor_id: runs.read(data) for actor_id, data in written.items()}
        self._runs = kept | {actor_id: run for actor_id, run in found.items() if run is not None}
        return dict(self._runs)


class _RankTable:
    """The ranks, dead ones included.

    The GCS remembers every actor that ever existed. So the whole table is read only when it can have changed: when a
    living rank has changed, or a rank is starting. It is also read from time to time, for ranks whose creation nobody
    announced.
    """

    def __init__(self, gcs: Gcs) -> None:
        self._gcs = gcs
        self._parser = _Parser(_rank, _IN_RANK_NAMES)
        self._alive: set[bytes] = set()
        self._ranks: tuple[RankActor, ...] = ()
        self._read_all = -READ_ALL_SECONDS

    def read(self, launching: bool) -> tuple[RankActor, ...]:
        now = time.monotonic()
        alive = {_digest(raw) for raw in self._gcs.actors("ALIVE") if _IN_RANK_NAMES in raw}
        is_settled = all(rank.state in ("ALIVE", "DEAD") for rank in self._ranks)
        if launching or not is_settled or alive != self._alive or now - self._read_all >= READ_ALL_SECONDS:
            self._ranks = _latest(self._parser.parse(self._gcs.actors()))
            self._alive, self._read_all = alive, now
        return self._ranks


class _Driver(NamedTuple):
    name: str
    node_id: str
    # When it ended; None while it is connected.
    ended: float | None


class _Drivers(NamedTuple):
    connected: tuple[str, ...] = ()
    # When the last of those that have ended did so; None if none has.
    last_end: float | None = None


class _DriverTable:
    """The drivers except our own and Ray's. The table may be long, so it is read from time to time."""

    def __init__(self, gcs: Gcs) -> None:
        self._gcs = gcs
        self._parser = _Parser(_driver, b"")
        self._drivers = _Drivers()
        self._read_at = -READ_DRIVERS_SECONDS

    def read(self, earlier_heads: Collection[str]) -> _Drivers:
        """Return the drivers but for those that were lost with an earlier head: the GCS takes a while to notice."""
        now = time.monotonic()
        if now - self._read_at >= READ_DRIVERS_SECONDS:
            parsed = self._parser.parse(self._gcs.drivers())
            found = [driver for driver in parsed if driver.node_id not in earlier_heads]
            connected = tuple(sorted(driver.name for driver in found if driver.ended is None))
            ends = (driver.ended for driver in found if driver.ended is not None)
            self._drivers, self._read_at = _Drivers(connected, max(ends, default=None)), now
        return self._drivers


class _Parser(Generic[Parsed]):
    """Parses the GCS's records; unchanged records are not parsed again."""

    def __init__(self, parse: Callable[[bytes], Parsed | None], words: bytes) -> None:
        self._parse = parse
        # Every record that is worth parsing contains these bytes.
        self._words = words
        self._known: dict[bytes, Parsed | None] = {}

    def parse(self, table: Iterable[bytes]) -> list[Parsed]:
        known, self._known = self._known, {}
        for raw in table:
            if self._words in raw:
                digest = _digest(raw)
                self._known[digest] = known[digest] if digest in known else self._read(raw)
        return [parsed for parsed in self._known.values() if parsed is not None]

    def _read(self, raw: bytes) -> Parsed | None:
        try:
            return self._parse(raw)
        except ValueError:
            return None


def _digest(raw: bytes) -> bytes:
    """Return a digest of a record, which may hold a user's exception of any size."""
    return hashlib.blake2b(raw, digest_size=16).digest()


def _pod_of(record: records.NodeRecord) -> str:
    return plain(record.pod, MAX_POD_NAME)


def _heads(table: Iterable[records.NodeRecord]) -> list[records.NodeRecord]:
    """Return the head's nodes, the present one last: it may continue the session of an earlier one."""
    return sorted((record for record in table if record.is_head), key=lambda record: (record.started, record.id))


def is_named(gcs_address: str, addresses: Collection[str]) -> bool:
    """Return whether the GCS's name stands for one of these heads' own addresses; True if nobody knows the name."""
    try:
        found = socket.getaddrinfo(gcs_address.rpartition(":")[0], None)
    except OSError:
        return True
    return any(where[0] in addresses for *_, where in found)


def _placement(raw: bytes) -> PlacementState | None:
    record = records.placement_group(raw)
    name = PlacementName.parse(record.name)
    if name is None or record.namespace != NAMESPACE or record.state == "REMOVED":
        return None
    return PlacementState(name, record.state, record.scheduling_state)


def _rank(raw: bytes) -> RankActor | None:
    record = records.actor(raw)
    name = RankName.parse(record.name)
    if name is None or record.namespace != NAMESPACE:
        return None
    process = (record.node_address, record.pid) if record.pid else None
    return RankActor(
        name,
        record.actor_id,
        _state_of(record),
        record.node_id,
        record.start_time,
        _death_of(record),
        process,
        record.worker_id,
    )


def _driver(raw: bytes) -> _Driver | None:
    record = records.driver(raw)
    is_ours = record.namespace == NAMESPACE or record.namespace.startswith(records.INTERNAL_NAMESPACES)
    name = plain(record.submission_id, MAX_JOB_ID) or record.id
    return None if is_ours else _Driver(name, record.node_id, record.ended)


def _death_of(record: records.ActorRecord) -> Death | None:
    """Return the death without its details, which are not read here."""
    death = record.death
    return None if death is None else Death(death.reason, plain(death.message, MAX_MESSAGE), "")


def _state_of(record: records.ActorRecord) -> str:
    """Return Ray's state, except for a constructor that raised: for a moment, Ray calls such an actor alive.

    Ray asks for the name to show once the constructor has returned.
    """
    return "CONSTRUCTOR_RAISED" if record.state == "ALIVE" and not record.repr_name else record.state


def _latest(ranks: Iterable[RankActor]) -> tuple[RankActor, ...]:
    """Of several actors with one name, return the living one, or else the one that started last."""
    latest: dict[RankName, RankActor] = {}
    for rank in ranks:
        known = latest.get(rank.name)
        if known is None or (rank.is_alive, rank.start_time) > (known.is_alive, known.start_time):
            latest[rank.name] = rank
    return tuple(latest.values())
