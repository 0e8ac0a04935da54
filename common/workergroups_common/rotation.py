"""A few slots for many who wait, given to their owners in rotation: who asks for a lot delays only itself."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager


class Rotation:
    """Gives slots to owners, such as namespaces."""

    def __init__(self, slots: int, of_one: int) -> None:
        """`slots`: how many there are, `of_one`: how many of them an owner may have at once."""
        self._slots = slots
        self._of_one = of_one
        # Who waits, the owner whose turn it is first; each holds at least one.
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._taken: Counter[str] = Counter()

    @property
    def is_full(self) -> bool:
        """Whether the next slot has to be waited for."""
        return self._taken.total() >= self._slots

    @asynccontextmanager
    async def slot(self, owner: str) -> AsyncIterator[None]:
        """Wait for a slot of the owner; it ends with the context."""
        await self._wait(owner)
        try:
            yield
        finally:
            self._end(owner)

    def _next(self, owners: Sequence[str]) -> str:
        """Return who gets the next slot, of owners that may have one; who has waited longest comes first."""
        return owners[0]

    async def _wait(self, owner: str) -> None:
        admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(admitted)
        self._admit()
        try:
            await admitted
        except asyncio.CancelledError:
            if not admitted.cancelled():
                self._end(owner)
            elif admitted in self._waiting.get(owner, ()):
                self._leave(owner, admitted)
            raise

    def _admit(self) -> None:
        """Give slots to those who may have one now; an owner that gets one goes to the end of the rotation."""
        while not self.is_full:
            owners = [owner for owner in self._waiting if self._taken[owner] < self._of_one]
            if not owners:
                return
            owner = self._next(owners)
            admitted = self._waiting[owner][0]
            self._leave(owner, admitted)
            if admitted.cancelled():
                continue  # The task that waited has not run since.
            if owner in self._waiting:
                self._waiting.move_to_end(owner)
            self._taken[owner] += 1
            admitted.set_result(None)

    def _leave(self, owner: str, admitted: asyncio.Future[None]) -> None:
        """Remove one who waits."""
        self._waiting[owner].remove(admitted)
        if not self._waiting[owner]:
            del self._waiting[owner]

    def _end(self, owner: str) -> None:
        self._taken[owner] -= 1
        if not self._taken[owner]:
            del self._taken[owner]
        self._admit()
