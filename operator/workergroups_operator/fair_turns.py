"""Who is next: namespaces take turns in rotation, and a turn that waits for others keeps nobody from theirs.

Turns mostly wait for the API server, and in a namespace with a slow admission webhook they wait long. Such a turn gives
up its slot after a moment, and the next turns of its namespace run in the slow lane until one of them is quick again.
So slow namespaces wait for each other only. A turn holds all objects of its cluster in memory, so both lanes have an
end: where the slow lane has no room, a turn that became slow is ended, and begins again when there is room.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

Outcome = TypeVar("Outcome")

# After this long a turn is slow.
MOMENT_SECONDS = 0.5
# Turns at once: quick ones, slow ones, and those of one namespace.
QUICK_TURNS = 16
SLOW_TURNS = 24
NAMESPACE_TURNS = 4


@dataclass
class _Lane:
    """Turns that run at once, at most `size` of them."""

    size: int
    busy: int = 0


class FairTurns:
    """Gives turns to namespaces."""

    def __init__(self) -> None:
        self._quick, self._slow = _Lane(QUICK_TURNS), _Lane(SLOW_TURNS)
        # Who waits, the namespace whose turn it is first; each holds at least one.
        self._waiting: OrderedDict[str, deque[asyncio.Future[_Lane]]] = OrderedDict()
        self._running: Counter[str] = Counter()
        self._slow_namespaces: set[str] = set()

    async def run(self, namespace: str, work: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Await `work()` in a turn of the namespace; it may be cancelled, and begin again."""
        while True:
            try:
                async with asyncio.timeout(None) as limit, self._turn(namespace, limit):
                    return await work()
            except TimeoutError:
                if not limit.expired():
                    raise

    @asynccontextmanager
    async def _turn(self, namespace: str, limit: asyncio.Timeout) -> AsyncIterator[None]:
        lane = await self._wait(namespace)
        loop = asyncio.get_running_loop()
        began = loop.time()

        def be_slow() -> None:
            nonlocal lane
            self._slow_namespaces.add(namespace)
            if lane is self._quick and self._slow.busy >= self._slow.size:
                limit.reschedule(loop.time())
            elif lane is self._quick:
                lane.busy -= 1
                lane = self._slow
                lane.busy += 1
                self._admit()

        timer = loop.call_later(MOMENT_SECONDS, be_slow)
        try:
            yield
        finally:
            timer.cancel()
            if loop.time() - began < MOMENT_SECONDS:
                self._slow_namespaces.discard(namespace)
            self._end(namespace, lane)

    async def _wait(self, namespace: str) -> _Lane:
        admitted: asyncio.Future[_Lane] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(namespace, deque()).append(admitted)
        self._admit()
        try:
            return await admitted
        except asyncio.CancelledError:
            if not admitted.cancelled():
                self._end(namespace, admitted.result())
            raise

    def _admit(self) -> None:
        """Give turns to those who may have one now; a namespace that gets one goes to the end of the rotation."""
        for namespace, queue in list(self._waiting.items()):
            lane = self._slow if namespace in self._slow_namespaces else self._quick
            while queue and queue[0].cancelled():
                queue.popleft()
            if queue and lane.busy < lane.size and self._running[namespace] < NAMESPACE_TURNS:
                lane.busy += 1
                self._running[namespace] += 1
                queue.popleft().set_result(lane)
                self._waiting.move_to_end(namespace)
            if not queue:
                del self._waiting[namespace]

    def _end(self, namespace: str, lane: _Lane) -> None:
        lane.busy -= 1
        self._running[namespace] -= 1
        if not self._running[namespace]:
            del self._running[namespace]
        self._admit()
