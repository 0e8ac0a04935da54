"""What the operator remembers of each watch while kopf restarts it: its last request, its last answer, its objects.

This memory outlives connections, so that kopf pauses before it retries a failing watch or a refused log-in.
"""

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from workergroups_operator.timings import Timings

Skeleton = dict[str, Any]
# How many times as long to wait after a refusal, which lasts until somebody grants the right.
_REFUSED = 5


class WatchRetries:
    """Equal pauses without end between kopf's tries of a request.

    With kopf's own back-off, the operator would see nothing for up to 21 seconds after the API server is back. After a
    minute of refusals, kopf would give up and end the operator.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __iter__(self) -> Iterator[float]:
        return repeat(self._seconds)


@dataclass
class Watch:
    """The objects of one kind, as kopf lists and watches them."""

    clock: Callable[[], float]
    retry_seconds: float
    heard: float
    # Whether the last list was refused, for all objects of a namespace.
    is_refused: bool = False
    _began: dict[bool, float] = field(default_factory=dict)
    # What kopf believes to exist, by namespace, name and UID: as text, since dicts take seven times as much memory, for
    # thousands of objects.
    _shown: dict[tuple[str | None, ...], bytes] = field(default_factory=dict)
    _vanished: list[bytes] = field(default_factory=list)

    @property
    def shows_any(self) -> bool:
        """Whether kopf believes that some objects exist."""
        return bool(self._shown)

    async def turn(self, *, is_stream: bool) -> None:
        """Wait until the next list (or stream) of this kind may begin."""
        now = self.clock()
        pause = self.retry_seconds * (_REFUSED if self.is_refused else 1)
        begins = max(now, self._began.get(is_stream, now - pause) + pause)
        self._began[is_stream] = begins
        self.note()
        await asyncio.sleep(begins - now)

    def note(self) -> None:
        """Take note that kopf or the API server did something about this kind."""
        self.heard = self.clock()

    def listed(self, items: Iterable[Skeleton]) -> None:
        """Take note of all objects that exist."""
        shown = {_identity(item): _text(item) for item in items}
        self._vanished += [item for identity, item in self._shown.items() if identity not in shown]
        self._shown = shown

    def happened(self, type_: str, item: Skeleton) -> None:
        """Take note of an event."""
        if type_ == "DELETED":
            self._shown.pop(_identity(item), None)
        else:
            self._shown[_identity(item)] = _text(item)

    def vanished(self) -> list[Skeleton]:
        """Return the objects that were deleted between two watches, each once."""
        vanished, self._vanished = self._vanished, []
        return [json.loads(text) for text in vanished]


class Watches:
    """All watches of this process, by their path in the API."""

    def __init__(self, timings: Timings, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._unwatched = timings.unwatched
        self._watches: dict[str, Watch] = defaultdict(lambda: Watch(clock, timings.watch_retry, clock()))

    def of(self, path: str) -> Watch:
        """Return the watch of a kind, new if it was never asked for."""
        return self._watches[path]

    def include(self, plural: str) -> bool:
        """Return whether kopf has watched a kind."""
        return any(path.rpartition("/")[2] == plural for path in self._watches)

    def ended(self) -> list[str]:
        """Return the paths that kopf no longer watches."""
        now = self._clock()
        return [path for path, watch in self._watches.items() if now - watch.heard > self._unwatched]


def _text(item: Skeleton) -> bytes:
    return json.dumps(item).encode()


def _identity(item: Skeleton) -> tuple[str | None, ...]:
    metadata = item["metadata"]
    return metadata.get("namespace"), metadata["name"], metadata.get("uid")
