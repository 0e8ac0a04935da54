"""Which nodes are about to go, and which drivers they wait for, in the key-value store of Ray's control service (GCS).

A node writes its notice under its pod's name. A driver that looks for notices writes on which pods its ranks are, and
which notices it has answered. The node ends when all of those drivers have answered that still run.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence

import ray

from workergroups.announcements import store
from workergroups.node import notice
from workergroups.ray_private import records
from workergroups.ray_private.gcs import Gcs

_NOTICES, _DRIVERS = "workergroups-notices", "workergroups-notified-drivers"
LOOK_SECONDS = 0.2
GONE_SECONDS = 10.0
"""As long after its deadline, a node is gone, and Ray knows it."""


class NoticeReader:
    """Looks for the notices of some ranks' nodes, on behalf of a driver.

    Args:
        actor_ids: The ranks; by default all actors of this driver that are alive.
    """

    def __init__(self, actor_ids: Sequence[str] | None = None) -> None:
        self._gcs, job = Gcs.of_driver(), str(ray.get_runtime_context().get_job_id())
        self._key = ":".join([job, *(actor_ids or ())[:1]])
        if actor_ids is None:
            actors = [each for each in map(records.actor, self._gcs.actors("ALIVE")) if each.job_id == job]
        else:
            actors = [records.actor(raw) for each in actor_ids if (raw := self._gcs.actor(each)) is not None]
        nodes = {each.node_id for each in actors}
        table = map(records.node, self._gcs.nodes())
        self._pods = sorted({each.pod for each in table if each.id in nodes})
        self._answered: set[str] = set()
        self._told: dict[str, notice.Notice] = {}
        self._write()

    def look(self) -> notice.Notice | None:
        """Return the notice with the earliest deadline; ``None`` if none of the nodes has given any."""
        found = self._gcs.get_many(_NOTICES, self._pods)
        read = {pod: notice.read(data) for pod, data in found.items()}
        # Of a deadline that is over, the pod's next container has nothing to say.
        present = {pod: given for pod, given in read.items() if given is not None and given.seconds}
        self._told |= present
        return min(present.values(), key=_deadline, default=None)

    def answer(self) -> None:
        """Let the nodes go whose notice was found, and return when Ray knows that they are gone."""
        fresh = {pod: given for pod, given in self._told.items() if pod not in self._answered}
        if not fresh:
            return
        self._answered |= fresh.keys()
        self._write()
        latest = max(given.seconds for given in fresh.values())
        until = time.monotonic() + latest + GONE_SECONDS
        while time.monotonic() < until and fresh.keys() & _live_pods(self._gcs):
            time.sleep(LOOK_SECONDS)

    def _write(self) -> None:
        record = {"pods": self._pods, "answered": sorted(self._answered)}
        self._gcs.put(_DRIVERS, self._key, json.dumps(record).encode())


def tell(gcs: Gcs, pod: str, given: notice.Notice) -> None:
    """Repeat this pod's notice for drivers.

    Raises:
        Exception: The GCS does not answer.
    """
    gcs.put(_NOTICES, pod, notice.to_record(given))
    _forget_the_dead(gcs)


def wait_for_drivers(gcs: Gcs, pod: str, given: notice.Notice) -> None:
    """Wait until the drivers have answered that have read notices of this pod's ranks, or the pod's time is over.

    Raises:
        Exception: The GCS does not answer.
    """
    while given.seconds and _waiting(gcs, pod):
        time.sleep(LOOK_SECONDS)


def _waiting(gcs: Gcs, pod: str) -> bool:
    """Return whether a driver that runs has ranks in the pod, and has not answered."""
    gcs.check_session()
    found = gcs.get_many(_DRIVERS, _of_live_drivers(gcs, gcs.keys(_DRIVERS)))
    told = (store.read(data) or {} for data in found.values())
    return any(pod in _texts(each.get("pods")) and pod not in _texts(each.get("answered")) for each in told)


def _of_live_drivers(gcs: Gcs, keys: Collection[str]) -> list[str]:
    live = {driver.id for driver in map(records.driver, gcs.drivers()) if driver.ended is None} if keys else set()
    return [key for key in keys if key.partition(":")[0] in live]


def _forget_the_dead(gcs: Gcs) -> None:
    """Remove what pods and drivers have written that are gone."""
    drivers, pods = set(gcs.keys(_DRIVERS)), set(gcs.keys(_NOTICES))
    for key in drivers.difference(_of_live_drivers(gcs, drivers)):
        gcs.delete(_DRIVERS, key)
    for pod in pods - _live_pods(gcs):
        gcs.delete(_NOTICES, pod)


def _live_pods(gcs: Gcs) -> set[str]:
    return {node.pod for node in map(records.node, gcs.nodes()) if node.is_alive}


def _deadline(given: notice.Notice) -> float:
    return given.deadline


def _texts(value: object) -> list[object]:
    return value if isinstance(value, list) else []
