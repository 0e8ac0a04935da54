"""Learn from the API server when objects may have changed, without asking again and again."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from workergroups_api.manifest import Kind
from workergroups_common.backoff import Backoff

from ..errors import ClientError
from .cluster import Cluster

_TOGETHER_SECONDS = 0.5
_TRIES = Backoff(first=1.0, last=30.0)


@dataclass(frozen=True)
class Watched:
    """Objects whose changes matter."""

    kind: Kind
    selector: str = ""


class ObjectChanges:
    """Watches objects in the background, and notes that one of them may have changed.

    A watch that ends or breaks is opened again, after a pause that grows while it keeps failing. What happened
    meanwhile is unknown, so that counts as a change.

    Args:
        cluster: Where the objects are.
        watched: The objects.
        everywhere: Whether to watch all namespaces and not only the default one.
    """

    def __init__(self, cluster: Cluster, watched: Sequence[Watched], *, everywhere: bool = False) -> None:
        self._cluster, self._everywhere = cluster, everywhere
        self._changed = threading.Event()
        for each in watched:
            threading.Thread(target=self._watch, args=(each,), daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Return whether something may have changed since the last time; wait for it at most that long.

        Changes that follow each other closely are one.
        """
        if not self._changed.wait(seconds):
            return False
        time.sleep(_TOGETHER_SECONDS)
        self._changed.clear()
        return True

    def _watch(self, watched: Watched) -> None:
        failures = 0
        while True:
            try:
                for _ in self._cluster.events(watched.kind, watched.selector, everywhere=self._everywhere):
                    failures = 0
                    self._changed.set()
            except (ClientError, ValueError):  # no answer, or something that is no event
                failures += 1
            self._changed.set()
            time.sleep(_TRIES.after(failures) or _TRIES.first)
