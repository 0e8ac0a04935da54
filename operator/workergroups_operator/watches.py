"""What is remembered of each watch while kopf restarts it: when it was asked for, when it answered, what it showed.

It outlives connections, so that neither a failing watch nor a refused log-in is retried without a pause.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

# A kind that has shown nothing for so long, not even a refusal, is not watched any more, whatever the reason.
UNWATCHED_SECONDS = 60.0

Skeleton = dict[str, Any]


class Retries:
    """How long kopf waits before each new try of a request: always the same, for as long as it takes.

    With kopf's own back-off, up to 21 seconds, the operator would see nothing for that long after the API server is
    back; and after a minute of refusals kopf would give up and end the operator.
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
    _began: dict[bool, float] = field(default_factory=dict)
    # What kopf believes to exist, by namespace, name and UID.
    _shown: dict[tuple[str | None, ...], Skeleton] = field(default_factory=dict)
    _vanished: list[Skeleton] = field(default_factory=list)

    async def turn(self, *, is_stream: bool) -> None:
        """Wait until a list, or a stream, may begin."""
        now = self.clock()
        begins = max(now, self._began.get(is_stream, now - self.retry_seconds) + self.retry_seconds)
        self._began[is_stream] = begins
        self.note()
        await asyncio.sleep(begins - now)

    def note(self) -> None:
        """Take note that kopf or the API server did something about this kind."""
        self.heard = self.clock()

    def listed(self, items: Iterable[Skeleton]) -> None:
        """Take note of all objects that exist."""
        shown = {_identity(item): item for item in items}
        self._vanished += [item for identity, item in self._shown.items() if identity not in shown]
        self._shown = shown

    def happened(self, type_: str, item: Skeleton) -> None:
        """Take note of an event."""
        if type_ == "DELETED":
            self._shown.pop(_identity(item), None)
        else:
            self._shown[_identity(item)] = item

    def vanished(self) -> list[Skeleton]:
        """Return the objects that were deleted while nobody watched, each once."""
        vanished, self._vanished = self._vanished, []
        return vanished


class Watches:
    """All watches of this process, by their path in the API."""

    def __init__(self, retry_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`retry_seconds`: how long after a list or a watch of a kind began, the next one may begin."""
        self._clock = clock
        self._watches: dict[str, Watch] = defaultdict(lambda: Watch(clock, retry_seconds, clock()))

    def of(self, path: str) -> Watch:
        """Return the watch of a kind, new if it was never asked for."""
        return self._watches[path]

    def ended(self) -> list[str]:
        """Return the paths that nobody watches any more, though somebody did."""
        now = self._clock()
        return [path for path, watch in self._watches.items() if now - watch.heard > UNWATCHED_SECONDS]


def _identity(item: Skeleton) -> tuple[str | None, ...]:
    metadata = item["metadata"]
    return metadata.get("namespace"), metadata["name"], metadata.get("uid")
