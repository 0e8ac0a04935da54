"""Which namespace gets the next turn. Few turns run at once: each holds all objects of its cluster in memory.

Half of the turns go to namespaces in rotation, the other half to the one whose writes are the quickest. So each gets a
turn, and where hundreds of clusters wait for a slow admission webhook, those that do not wait for it come first. While
nobody is known to be slow yet, those come first whose writes are known to be quick.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from workergroups_operator.timings import Timings

# Turns at once, and those of one namespace.
TURNS = 8
NAMESPACE_TURNS = 4


class FairTurns:
    """Gives turns to namespaces."""

    def __init__(self, write_seconds: Callable[[str], float], timings: Timings) -> None:
        """`write_seconds`: how long a write in a namespace takes."""
        self._write_seconds = write_seconds
        self._quick = timings.write_quick
        # Who waits, the namespace whose turn it is first; each holds at least one.
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._running: Counter[str] = Counter()
        self._is_quickest_next = False

    @asynccontextmanager
    async def turn(self, namespace: str) -> AsyncIterator[None]:
        """Wait for a turn of the namespace; it ends with the context."""
        await self._wait(namespace)
        try:
            yield
        finally:
            self._end(namespace)

    async def _wait(self, namespace: str) -> None:
        admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(namespace, deque()).append(admitted)
        self._admit()
        try:
            await admitted
        except asyncio.CancelledError:
            if not admitted.cancelled():
                self._end(namespace)
            raise

    def _admit(self) -> None:
        """Give turns to those who may have one now; a namespace that gets one goes to the end of the rotation."""
        while self._running.total() < TURNS:
            free = [namespace for namespace in self._waiting if self._running[namespace] < NAMESPACE_TURNS]
            if not free:
                return
            namespace = min(free, key=self._rank) if self._is_quickest_next else free[0]
            admitted = self._take(namespace)
            if not admitted.cancelled():
                self._is_quickest_next = not self._is_quickest_next
                self._running[namespace] += 1
                admitted.set_result(None)

    def _rank(self, namespace: str) -> float:
        seconds = self._write_seconds(namespace)
        return seconds if seconds >= self._quick else 0.0

    def _take(self, namespace: str) -> asyncio.Future[None]:
        queue = self._waiting[namespace]
        admitted = queue.popleft()
        if queue:
            self._waiting.move_to_end(namespace)
        else:
            del self._waiting[namespace]
        return admitted

    def _end(self, namespace: str) -> None:
        self._running[namespace] -= 1
        if not self._running[namespace]:
            del self._running[namespace]
        self._admit()
