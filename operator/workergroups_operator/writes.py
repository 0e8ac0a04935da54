"""Requests that write, and dry runs. Admission may delay them, so a reconcile waits for them only for a moment.

A reconcile begins its writes, waits for a moment, and continues without those that take longer. When one of these ends,
the cluster gets another reconcile. In a namespace whose writes are slow, reconciles do not wait at all: a reconcile
occupies a slot that others need, and holds all objects of its cluster in memory. `FairReconciles` also considers which
namespaces are slow.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from workergroups_operator.membership import ClusterKey
from workergroups_operator.timings import Timings

# Of how many namespaces the operator remembers how long their writes take.
REMEMBERED = 1000

Name = TypeVar("Name", bound=Hashable)
Answer = TypeVar("Answer")


@dataclass
class _Namespace:
    """What the operator knows of the writes in one namespace."""

    slots: asyncio.Semaphore
    # How long the last write took that ended, or that a reconcile left; None before the first. When the writes that
    # have a slot began, in order.
    seconds: float | None = None
    began: dict[Hashable, float] = field(default_factory=dict)
    writes: int = 0
    # Clusters whose writes found no slot; the one that has waited longest comes first.
    waiting: dict[ClusterKey, None] = field(default_factory=dict)


@dataclass
class _Write(Generic[Answer]):
    """A write for which a reconcile waits, or which is late."""

    task: asyncio.Task[Answer]
    is_late: bool = False


class Writes(Generic[Answer]):
    """The writes of one step of the loop: one at a time for each name."""

    def __init__(self, enqueue: Callable[[ClusterKey], None], timings: Timings, *, at_once: int) -> None:
        """`at_once`: how many of one namespace may be under way."""
        self._enqueue = enqueue
        self._timings = timings
        self._at_once = at_once
        self._namespaces: dict[str, _Namespace] = {}
        self._writes: dict[Hashable, _Write[Answer]] = {}

    async def run(
        self, key: ClusterKey, writes: Mapping[Name, Callable[[], Awaitable[Answer]]]
    ) -> Mapping[Name, Answer]:
        """Begin the writes that are not under way. Return the answers that come within a moment, by name.

        The operator drops a write that finds no slot, to save its memory: the cluster gets a reconcile once a slot is
        free.
        """
        begun = {name: self._begin(key, name, write) for name, write in writes.items() if name not in self._writes}
        if not begun:
            return {}
        namespace = self._namespaces[key.namespace]
        try:
            wait = self._timings.write_wait
            is_slow = namespace.seconds is not None and namespace.seconds >= wait
            await asyncio.wait([write.task for write in begun.values()], timeout=0.0 if is_slow else wait)
        finally:  # Also if this reconcile is cancelled while it waits.
            for name, write in begun.items():
                if not write.task.done():
                    self._leave(key, name, write)
        return {name: write.task.result() for name, write in begun.items() if write.task.done()}

    def seconds(self, namespace: str) -> float:
        """Return how long a write in this namespace takes, as far as known."""
        known = self._namespaces.get(namespace)
        if known is None:
            return self._timings.write_unknown
        now = asyncio.get_running_loop().time()
        under_way = now - next(iter(known.began.values()), now)
        return max(self._timings.write_unknown if known.seconds is None else known.seconds, under_way)

    def cancel(self, name: Hashable) -> None:
        """Cancel a write whose answer is not needed any more."""
        if name in self._writes:
            self._writes[name].task.cancel()

    async def close(self) -> None:
        """Cancel all writes and wait for their end."""
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
            namespace.seconds = max(namespace.seconds or 0.0, self._timings.write_wait)
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
        """Keep what is known of the namespaces with the latest writes."""
        self._namespaces[namespace] = self._namespaces.pop(namespace)
        if len(self._namespaces) > REMEMBERED:
            idle = (name for name, known in self._namespaces.items() if not known.writes and not known.waiting)
            del self._namespaces[next(idle)]
