"""What is about to end, and for which drivers that waits, in the key-value store of Ray's control service (GCS).

A node writes its notice under its pod's name, and the agent writes that of an incarnation, all of whose ranks it is
about to end. A driver that looks for notices writes what its ranks end with, and which notices it has answered. All
wait until those drivers have answered that still run.
"""

from __future__ import annotations

import contextlib
import functools
import json
import time
import uuid
from collections.abc import Collection, Iterable, Sequence

import ray
from ray.exceptions import RayError

from workergroups.announcements import store
from workergroups.naming import NAMESPACE, RankName
from workergroups.node import notice
from workergroups.ray_private import key_value_store, records
from workergroups.ray_private.gcs import Gcs, SessionEnded

_NOTICES, _DRIVERS = notice.KV_NAMESPACE, "workergroups-notified-drivers"
LOOK_SECONDS = 0.2
AWAY_SECONDS, AGAIN_SECONDS = 0.5, 5.0
"""A rank waits so long for the GCS, and then does not ask for so long."""
GONE_SECONDS = 10.0
"""As long after its deadline, all of it is gone, and Ray knows it."""


class NoticeReader:
    """Looks for the notices of some ranks, on behalf of a driver. While the GCS is away, it finds nothing new.

    Args:
        actor_ids: The ranks; by default all actors of this driver that are alive when it first looks.
    """

    def __init__(self, actor_ids: Sequence[str] | None = None) -> None:
        self._job = str(ray.get_runtime_context().get_job_id())
        # A program may have several, each of which answers for itself.
        self._key = f"{self._job}:{uuid.uuid4().hex[:8]}"
        self._actor_ids = actor_ids
        self._keys: list[str] = []
        self._answered: set[str] = set()
        self._present: dict[str, notice.Notice] = {}
        self._told: dict[str, notice.Notice] = {}
        self._is_written = False

    def look(self) -> notice.Notice | None:
        """Return the notice with the earliest deadline of those without an answer; ``None`` if there is none.

        From now on, answers are awaited.
        """
        with contextlib.suppress(RayError):  # the GCS is away
            self._keys = self._keys or self._find_keys()
            if not self._is_written:
                self._write()
            found = self._gcs.get_many(_NOTICES, [key for key in self._keys if key not in self._answered])
            read = {key: notice.read(data) for key, data in found.items()}
            # Of a deadline that is over, the pod's next container has nothing to say.
            self._present = {key: given for key, given in read.items() if given is not None and given.seconds}
            self._told |= self._present
        left = [given for key, given in self._present.items() if key not in self._answered and given.seconds]
        return min(left, key=_deadline, default=None)

    def answer(self) -> None:
        """Let go what has given the notices that were found, and return when Ray knows that it is gone.

        What gives notice meanwhile, as other nodes that are drained, may go, too.
        """
        going: dict[str, notice.Notice] = {}
        while fresh := {key: given for key, given in self._told.items() if key not in self._answered}:
            going |= fresh
            self._answered |= fresh.keys()
            self._is_written = False
            until = time.monotonic() + max(given.seconds for given in going.values()) + GONE_SECONDS
            self.look()
            while time.monotonic() < until and not self._told.keys() - self._answered and self._has_live(going.keys()):
                time.sleep(LOOK_SECONDS)
                self.look()

    def stop(self) -> None:
        """Let nothing wait for this driver until it looks again."""
        self._is_written = False
        with contextlib.suppress(RayError):
            self._gcs.delete(_DRIVERS, self._key)

    @functools.cached_property
    def _gcs(self) -> Gcs:
        return Gcs.of_driver()

    def _find_keys(self) -> list[str]:
        self._gcs.check_session()
        if self._actor_ids is None:
            actors = [each for each in map(records.actor, self._gcs.actors("ALIVE")) if each.job_id == self._job]
        else:
            actors = [records.actor(raw) for each in self._actor_ids if (raw := self._gcs.actor(each)) is not None]
        nodes = {each.node_id for each in actors}
        pods = {each.pod for each in map(records.node, self._gcs.nodes()) if each.id in nodes}
        return sorted(pods | _incarnations(actors))

    def _write(self) -> None:
        record = {"keys": self._keys, "answered": sorted(self._answered)}
        self._gcs.put(_DRIVERS, self._key, json.dumps(record).encode())
        self._is_written = True

    def _has_live(self, keys: Collection[str]) -> bool:
        try:
            self._gcs.check_session()
            return not _live(self._gcs).isdisjoint(keys)
        except SessionEnded:
            return False
        except RayError:
            return True


class _OwnIncarnation:
    """Looks for the notice that this process's rank ends, with all of its incarnation."""

    def __init__(self) -> None:
        name = RankName.parse(ray.get_runtime_context().get_actor_name() or "")
        self._key = None if name is None else name.incarnation_key
        self._found: notice.Notice | None = None
        self._next = 0.0

    def look(self) -> notice.Notice | None:
        if self._key is not None and time.monotonic() >= self._next:
            try:
                self._found = notice.read(key_value_store.get_within(AWAY_SECONDS, _NOTICES, self._key))
                self._next = time.monotonic() + LOOK_SECONDS
            except RayError:  # the GCS is away
                self._next = time.monotonic() + AGAIN_SECONDS
        return self._found


def of_this_rank() -> notice.Notice | None:
    """Return the notice that this process's rank ends, with its node or its incarnation; ``None`` if there is none.

    That of the incarnation is as of the latest 0.2 s, as ranks may ask for it in each step, or from before the GCS went
    away.
    """
    return notice.current() or (_own_incarnation().look() if ray.is_initialized() else None)


@functools.cache
def _own_incarnation() -> _OwnIncarnation:
    return _OwnIncarnation()


def tell(gcs: Gcs, key: str, given: notice.Notice) -> None:
    """Tell drivers of the notice of a pod, or of an incarnation.

    Raises:
        Exception: The GCS does not answer.
    """
    gcs.put(_NOTICES, key, notice.to_record(given))
    _forget_the_dead(gcs)


def withdraw(gcs: Gcs, key: str) -> None:
    """Remove the notice of what has ended.

    Raises:
        Exception: The GCS does not answer.
    """
    gcs.delete(_NOTICES, key)


def wait_for_drivers(gcs: Gcs, key: str, given: notice.Notice) -> None:
    """Wait until the drivers have answered that have read notices of this key, or the time is over.

    Raises:
        Exception: The GCS does not answer.
    """
    while given.seconds and is_awaited(gcs, key):
        time.sleep(LOOK_SECONDS)


def is_awaited(gcs: Gcs, key: str) -> bool:
    """Return whether a driver that runs has read notices of this key, and has not answered.

    One whose ranks have all ended has nothing to answer.

    Raises:
        Exception: The GCS does not answer.
    """
    gcs.check_session()
    found = gcs.get_many(_DRIVERS, _of_live_drivers(gcs, gcs.keys(_DRIVERS)))
    told = (store.read(data) or {} for data in found.values())
    waiting = [keys for each in told if key in (keys := _texts(each.get("keys"))) - _texts(each.get("answered"))]
    live = _live(gcs) if waiting else set()
    return any(not (ranks := _of_ranks(keys)) or ranks & live for keys in waiting)


def of_incarnations(gcs: Gcs) -> frozenset[str]:
    """Return the incarnations that have notice.

    Raises:
        Exception: The GCS does not answer.
    """
    return frozenset(_of_ranks(set(gcs.keys(_NOTICES))))


def present(gcs: Gcs, key: str) -> notice.Notice | None:
    """Return the notice of this key; ``None`` if there is none.

    Raises:
        Exception: The GCS does not answer.
    """
    return notice.read(gcs.get(_NOTICES, key))


def _of_live_drivers(gcs: Gcs, keys: Collection[str]) -> list[str]:
    live = {driver.id for driver in map(records.driver, gcs.drivers()) if driver.ended is None} if keys else set()
    return [key for key in keys if key.partition(":")[0] in live]


def _forget_the_dead(gcs: Gcs) -> None:
    """Remove what drivers have written that are gone, and the notices of what is gone."""
    drivers, told = set(gcs.keys(_DRIVERS)), set(gcs.keys(_NOTICES))
    for key in drivers.difference(_of_live_drivers(gcs, drivers)):
        gcs.delete(_DRIVERS, key)
    for key in told - _live(gcs):
        gcs.delete(_NOTICES, key)


def _live(gcs: Gcs) -> set[str]:
    """Return the pods of the live nodes, and the incarnations that have live ranks."""
    pods = {node.pod for node in map(records.node, gcs.nodes()) if node.is_alive}
    return pods | _incarnations(map(records.actor, gcs.actors("ALIVE")))


def _incarnations(actors: Iterable[records.ActorRecord]) -> set[str]:
    names = (RankName.parse(each.name) for each in actors if each.namespace == NAMESPACE)
    return {name.incarnation_key for name in names if name is not None}


def _deadline(given: notice.Notice) -> float:
    return given.deadline


def _texts(value: object) -> set[str]:
    return {each for each in value if isinstance(each, str)} if isinstance(value, list) else set()


def _of_ranks(keys: set[str]) -> set[str]:
    return {key for key in keys if "/" in key}  # no pod's name has one
