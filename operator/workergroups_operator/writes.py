"""Requests that write, dry runs too. Admission may delay them, so a turn waits for them for a moment only.

A turn begins its writes, waits for a moment, and goes on without those that take longer; when one of these ends, the
cluster gets another turn. In a namespace whose writes are slow, turns do not even wait for the moment: a turn takes a
slot that others want, and holds all objects of its cluster in memory. Who is slow also counts for whose turn is next.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from workergroups_operator.membership import ClusterKey

# For how long a turn waits. A few writes take a tenth of it, unless somebody is slow.
MOMENT_SECONDS = 0.2
# What a write takes where none has ended yet: those that are known to be quick come before.
UNKNOWN_SECONDS = 1.0
# Of how many namespaces it is remembered.
REMEMBERED = 1000

Name = TypeVar("Name", bound=Hashable)
Answer = TypeVar("Answer")


@dataclass
class _Namespace:
    """What is known of the writes of one namespace."""

    slots: asyncio.Semaphore
    # How long the last write took that ended or that a turn left, None for none, and when those began that have a slot,
    # in order.
    seconds: float | None = None
    began: dict[Hashable, float] = field(default_factory=dict)
    writes: int = 0
    # Clusters with writes that found no slot, the one that waits longest first.
    waiting: dict[ClusterKey, None] = field(default_factory=dict)


@dataclass
class _Write(Generic[Answer]):
    """A write for which somebody waits, or which is late."""

    task: asyncio.Task[Answer]
    is_late: bool = False


class Writes(Generic[Answer]):
    """The writes of one step of the loop. There is one write of a name at a time."""

    def __init__(self, enqueue: Callable[[ClusterKey], None], *, at_once: int) -> None:
        """`at_once`: how many of one namespace may be under way."""
        self._enqueue = enqueue
        self._at_once = at_once
        self._namespaces: dict[str, _Namespace] = {}
        self._writes: dict[Hashable, _Write[Answer]] = {}

    async def run(
        self, key: ClusterKey, writes: Mapping[Name, Callable[[], Awaitable[Answer]]]
    ) -> Mapping[Name, Answer]:
        """Begin those that are not under way. Returns the answers that came within a moment, by name.

        A write that found no slot is forgotten, so that it takes no memory: the cluster gets a turn when there is one.
        """
        begun = {name: self._begin(key, name, write) for name, write in writes.items() if name not in self._writes}
        if not begun:
            return {}
        namespace = self._namespaces[key.namespace]
        try:
            moment = 0.0 if (namespace.seconds or 0.0) >= MOMENT_SECONDS else MOMENT_SECONDS
            await asyncio.wait([write.task for write in begun.values()], timeout=moment)
        finally:  # Also if this turn is ended while it waits.
            for name, write in begun.items():
                if not write.task.done():
                    self._leave(key, name, write)
        return {name: write.task.result() for name, write in begun.items() if write.task.done()}

    def seconds(self, namespace: str) -> float:
        """How long a write in this namespace takes, as far as known."""
        known = self._namespaces.get(namespace)
        if known is None:
            return UNKNOWN_SECONDS
        now = asyncio.get_running_loop().time()
        under_way = now - next(iter(known.began.values()), now)
        return max(UNKNOWN_SECONDS if known.seconds is None else known.seconds, under_way)

    def cancel(self, name: Hashable) -> None:
        """End a write whose answer nobody wants any more."""
        if name in self._writes:
            self._writes[name].task.cancel()

    async def close(self) -> None:
        """End all writes."""
        tasks = [write.task for write in self._writes.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, key: ClusterKey, name: Hashable, write: Callable[[], Awaitable[Answer]]) -> _Write[Answer]:
        namespace = self._namespaces.setdefault(key.namespace, _Namespace(asyncio.Semaphore(self._at_once)))
        namespace.writes += 1
        task = asyncio.create_task(self._perform(namespace, name, write), name=f"write {name}")
        self._writes[name] = _Write(task)
        task.add_done_callback(partial(self._ended, key, name))
        return self._writes[name]

    async def _perform(self, namespace: _Namespace, name: Hashable, write: Callable[[], Awaitable[Answer]]) -> Answer:
        clock = asyncio.get_running_loop().time
        async with namespace.slots:
            namespace.began[name] = clock()
            try:
                return await write()
            finally:
                namespace.seconds = clock() - namespace.began.pop(name)

    def _leave(self, key: ClusterKey, name: Hashable, write: _Write[Answer]) -> None:
        namespace = self._namespaces[key.namespace]
        if name in namespace.began:
            write.is_late = True
            namespace.seconds = max(namespace.seconds or 0.0, MOMENT_SECONDS)
        else:
            write.task.cancel()
            namespace.waiting[key] = None

    def _ended(self, key: ClusterKey, name: Hashable, task: asyncio.Task[Answer]) -> None:
        if self._writes.pop(name).is_late and not task.cancelled():
            self._enqueue(key)
        namespace = self._namespaces[key.namespace]
        namespace.writes -= 1
        if namespace.waiting and not namespace.slots.locked():
            waits_longest = next(iter(namespace.waiting))
            del namespace.waiting[waits_longest]
            self._enqueue(waits_longest)
        elif not namespace.writes:
            self._remember(key.namespace)

    def _remember(self, namespace: str) -> None:
        """Keep what is known of the namespaces that were written last."""
        self._namespaces[namespace] = self._namespaces.pop(namespace)
        if len(self._namespaces) > REMEMBERED:
            idle = (name for name, known in self._namespaces.items() if not known.writes and not known.waiting)
            del self._namespaces[next(idle)]
