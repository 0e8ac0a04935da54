"""Watch pools and groups from outside, with the observer's own clock."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from workergroups_api.conditions import find
from workergroups_api.group_status import WorkerGroupStatus
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP, Manifest
from workergroups_api.names import API_VERSION
from workergroups_api.pool_status import ResourcePoolStatus
from workergroups_api.report import PoolReport
from workergroups_api.vocabulary import ConditionType

POOLS, GROUPS = RESOURCE_POOL.plural, WORKER_GROUP.plural
_API = f"/apis/{API_VERSION}"
ABSENT = "Absent"


@dataclass(frozen=True)
class Seen:
    """The condition Ready of an object at one time."""

    at: float
    """The observer's monotonic clock."""
    wall: float
    """The observer's wall clock, which is comparable only with processes on the same machine."""
    status: str
    """True, False or Unknown; Absent if the condition or the object does not exist."""
    reason: str
    message: str
    life: str
    """The session and pods of a pool, or the session and incarnation of a group, that the status is about."""
    incarnation: int = 0


class Watch:
    """Records all changes of a namespace's pools and groups while it is open."""

    def __init__(self, namespace: str) -> None:
        self._paths = {plural: f"{_API}/namespaces/{namespace}/{plural}?watch=true" for plural in (POOLS, GROUPS)}
        self._histories: dict[tuple[str, str], list[Seen]] = defaultdict(list)
        self._news = threading.Condition()
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._closed = False
        self._failure: Exception | None = None
        self._threads = [threading.Thread(target=self._follow, args=(plural,)) for plural in self._paths]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        with self._news:
            self._closed = True
            for process in self._processes.values():
                process.terminate()
        for thread in self._threads:
            thread.join()

    def history(self, plural: str, name: str, since: float = 0.0) -> list[Seen]:
        """Return the observations of an object since a time."""
        with self._news:
            if self._failure is not None:
                raise self._failure
            return [seen for seen in self._histories[plural, name] if seen.at >= since]

    def latest(self, plural: str, name: str) -> Seen:
        """Return the last observation of an object."""
        history = self.history(plural, name)
        return history[-1] if history else Seen(0.0, 0.0, ABSENT, "Unseen", "no event yet", "")

    def wait(self, is_so: Callable[[], bool], seconds: float) -> bool:
        """Wait until the condition holds, checking after each event; return whether it did in time."""
        deadline = time.monotonic() + seconds
        while not is_so():
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            with self._news:
                self._news.wait(min(remaining, 0.2))
        return True

    def _follow(self, plural: str) -> None:
        try:
            self._watch(plural)
        except Exception as error:  # Nothing is recorded any more: history() raises it.
            self._failure = error

    def _watch(self, plural: str) -> None:
        """Watch the kind; the API server ends each watch after a while, so start another."""
        while True:
            with self._news:
                if self._closed:
                    return
                command = ["kubectl", "get", "--raw", self._paths[plural]]
                process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                self._processes[plural] = process
            with process:
                for line in process.stdout or ():
                    self._note(plural, json.loads(line))
            time.sleep(0.1)

    def _note(self, plural: str, event: dict[str, Any]) -> None:
        at, wall = time.monotonic(), time.time()
        if event["type"] not in ("ADDED", "MODIFIED", "DELETED"):
            return
        manifest = event["object"]
        seen = _read(manifest, at, wall, is_gone=event["type"] == "DELETED")
        with self._news:
            self._histories[plural, manifest["metadata"]["name"]].append(seen)
            self._news.notify_all()


def _read(manifest: Manifest, at: float, wall: float, is_gone: bool) -> Seen:
    status = {} if is_gone else manifest.get("status", {})
    if manifest["kind"] == WORKER_GROUP.kind:
        group = WorkerGroupStatus.model_validate(status)
        incarnation, life = group.incarnation or 0, f"{group.session}/{group.incarnation or 0}"
        ready = find(group.conditions, ConditionType.READY)
    else:
        pool = ResourcePoolStatus.model_validate(status)
        seen = pool.reservation or PoolReport()
        incarnation, life = 0, f"{seen.session}/{seen.joined_pods}"
        ready = find(pool.conditions, ConditionType.READY)
    if ready is None:
        return Seen(at, wall, ABSENT, "", "", life, incarnation)
    return Seen(at, wall, ready.status, ready.reason, ready.message, life, incarnation)
