"""Who is next: namespaces take turns in rotation, and few turns run at once, since each holds its cluster's objects."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

# Turns at once, and those of one namespace.
TURNS = 16
NAMESPACE_TURNS = 4


class FairTurns:
    """Gives turns to namespaces."""

    def __init__(self) -> None:
        # Who waits, the namespace whose turn it is first; each holds at least one.
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._running: Counter[str] = Counter()

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
        for namespace, queue in list(self._waiting.items()):
            while queue and queue[0].cancelled():
                queue.popleft()
            if queue and self._running.total() < TURNS and self._running[namespace] < NAMESPACE_TURNS:
                self._running[namespace] += 1
                queue.popleft().set_result(None)
                self._waiting.move_to_end(namespace)
            if not queue:
                del self._waiting[namespace]

    def _end(self, namespace: str) -> None:
        self._running[namespace] -= 1
        if not self._running[namespace]:
            del self._running[namespace]
        self._admit()
