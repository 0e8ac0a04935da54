"""One task per key: keys that are added again coalesce, a key never runs twice at once, failures back off.

`FairReconciles` decides which keys run now. Each key also runs again after a while without any event, in case an event
was lost.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from aiolimiter import AsyncLimiter

from workergroups_common.rotation import Rotation
from workergroups_operator.timings import Timings


class Namespaced(Hashable, Protocol):
    """A key that has a namespace."""

    @property
    def namespace(self) -> str:
        """The namespace whose reconciles the key shares."""


Key = TypeVar("Key", bound=Namespaced)

LOGGER = logging.getLogger(__name__)
# A key runs this many times in a burst, and then once in each `turn_again` seconds.
RUNS_AT_ONCE = 60
# Reconciles at once, and those of one namespace: each holds all objects of its cluster in memory.
RECONCILES = 8
NAMESPACE_RECONCILES = 4


@dataclass(frozen=True)
class Result:
    """The outcome of a run."""

    # When to run again at the latest if nothing happens; None if nothing is left to do for the key.
    requeue_after: float | None
    # What failed, if anything: the key runs again, with back-off.
    failure: str | None = None
    # Whether statuses may be untrue until then: the pauses of the back-off stay short.
    is_urgent: bool = False
    # For how many seconds no event starts another run.
    pause: float = 0.0


class FairReconciles(Rotation):
    """Gives reconciles to namespaces: half of them in rotation, the others to the one whose writes are the quickest.

    So each gets a reconcile, and where hundreds of clusters wait for a slow admission webhook, those that do not wait
    for it come first. While none is known to be slow yet, those come first whose writes are known to be quick.
    """

    def __init__(self, write_seconds: Callable[[str], float], timings: Timings) -> None:
        """`write_seconds`: how long a write in a namespace takes."""
        super().__init__(RECONCILES, NAMESPACE_RECONCILES)
        self._write_seconds = write_seconds
        self._quick = timings.write_quick
        self._is_quickest_next = False

    def _next(self, owners: Sequence[str]) -> str:
        is_quickest, self._is_quickest_next = self._is_quickest_next, not self._is_quickest_next
        return min(owners, key=self._rank) if is_quickest else owners[0]

    def _rank(self, namespace: str) -> float:
        seconds = self._write_seconds(namespace)
        return seconds if seconds >= self._quick else 0.0


class WorkQueue(Generic[Key]):
    """Calls `work(key)` soon after each `add`, and again after the seconds that it returns."""

    def __init__(
        self,
        work: Callable[[Key], Awaitable[Result]],
        write_seconds: Callable[[str], float],
        timings: Timings,
        waited: Callable[[float], None] = lambda _: None,
    ) -> None:
        """`write_seconds`: how long a write in a namespace takes. `waited` gets how long each run waited for others."""
        self._work = work
        self._waited = waited
        self._timings = timings
        self._fair = FairReconciles(write_seconds, timings)
        self._added: dict[Key, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, key: Key) -> None:
        """Queue the key."""
        if key not in self._added:
            self._added[key] = asyncio.Event()
            task = asyncio.create_task(self._serve(key), name=f"serve {key}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._added[key].set()

    async def close(self) -> None:
        """End all tasks and wait for their end."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, key: Key) -> None:
        added, clock = self._added[key], asyncio.get_running_loop().time
        failing_since: float | None = None
        # A key that is added without end, as when two controllers fight over a field, must not keep the operator busy.
        limiter = AsyncLimiter(RUNS_AT_ONCE, RUNS_AT_ONCE * self._timings.turn_again)
        while True:
            await limiter.acquire()
            result = await self._try(key, added)
            delay = result.requeue_after
            if not result.failure:
                failing_since = None
            else:
                failing_since = clock() if failing_since is None else failing_since
                backoff = self._timings.urgent_retry if result.is_urgent else self._timings.retry
                retry = backoff.pause(clock() - failing_since)
                delay = retry if delay is None else min(retry, delay)
                LOGGER.warning("%s: %s; trying again in %.1f s", key, result.failure, delay)
            if delay is None and not added.is_set():
                del self._added[key]
                return
            await asyncio.sleep(max(self._timings.settle, result.pause))
            resync = self._timings.resync * random.uniform(2 / 3, 1)
            await self._wait(added, resync if delay is None else min(delay, resync))

    async def _try(self, key: Key, added: asyncio.Event) -> Result:
        clock = asyncio.get_running_loop().time
        due = clock()
        try:
            async with self._fair.slot(key.namespace):
                self._waited(clock() - due)
                added.clear()
                return await self._work(key)
        except Exception as error:
            LOGGER.exception("%s", key)
            return Result(None, type(error).__name__, is_urgent=True)

    @staticmethod
    async def _wait(added: asyncio.Event, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await added.wait()
        except TimeoutError:
            pass
