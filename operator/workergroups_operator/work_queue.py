"""One task per key: wakes coalesce, a key never runs twice at once, failures back off, deadlines wake by themselves."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

LOGGER = logging.getLogger(__name__)
FIRST_RETRY_SECONDS = 1.0
LAST_RETRY_SECONDS = 60.0


def retry_delay(failures: int) -> float:
    """Seconds before the next try after that many failures in a row: 1, 2, 4, ... 60."""
    return float(min(LAST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** (failures - 1)))


class WorkQueue(Generic[Key]):
    """Calls `work(key)` after each wake, and again after the seconds that it returns; None means: nothing left."""

    def __init__(self, work: Callable[[Key], Awaitable[float | None]], concurrency: int = 16) -> None:
        self._work = work
        self._slots = asyncio.Semaphore(concurrency)
        self._woken: dict[Key, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def wake(self, key: Key) -> None:
        """Have the key worked on soon."""
        if key not in self._woken:
            self._woken[key] = asyncio.Event()
            task = asyncio.create_task(self._serve(key), name=f"serve {key}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._woken[key].set()

    async def close(self) -> None:
        """End all tasks and wait for their end."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, key: Key) -> None:
        woken = self._woken[key]
        failures = 0
        while True:
            woken.clear()
            try:
                async with self._slots:
                    delay = await self._work(key)
                failures = 0
            except Exception:
                failures += 1
                delay = retry_delay(failures)
                LOGGER.exception("%s failed; trying again in %.0f s", key, delay)
            if delay is None and not woken.is_set():
                del self._woken[key]
                return
            await self._wait(woken, delay)

    @staticmethod
    async def _wait(woken: asyncio.Event, seconds: float | None) -> None:
        try:
            async with asyncio.timeout(seconds):
                await woken.wait()
        except TimeoutError:
            pass
