"""Memory for large joined batches: released memory is reused if another batch needs it within some seconds.

For memory that it has not had before, the kernel has to find and to clear every page, which takes about as long as
filling it; results of one size that follow each other would pay for that each time.
"""

from __future__ import annotations

import mmap
import sys
import threading
import time
import weakref
from typing import Any

from workergroups.lazy import np

_SMALLEST = 16 * 2**20
"""Bytes below which memory comes from numpy."""
_KEPT_FOR = 10.0
"""Seconds after which released memory that was not reused goes back to the kernel."""


class Buffers:
    """The memory that joined batches of this process have released."""

    def __init__(self) -> None:
        # (when it was given up, memory). Changed by single operations that are atomic, since arrays also end in the
        # middle of anything, when the garbage collector finds them.
        self._free: list[tuple[float, mmap.mmap]] = []
        self._keeper: threading.Thread | None = None

    def take(self, size: int) -> Any:
        """Return a numpy array of ``size`` bytes with any contents; its memory comes back when nothing refers to it."""
        if size < _SMALLEST or sys.platform != "linux":
            return np.empty(size, dtype=np.uint8)
        memory = self._again(size) or _new(size)
        array = np.frombuffer(memory, dtype=np.uint8, count=size)
        # Views and tensors refer to this array, as numpy does not look through it to the memory.
        weakref.finalize(array, self._give_up, memory).atexit = False
        if self._keeper is None:
            self._keeper = threading.Thread(target=self._keep, name="workergroups-buffers", daemon=True)
            self._keeper.start()
        return array

    def expire(self) -> None:
        """Give back what was not taken again in time."""
        now = time.monotonic()
        for entry in list(self._free):
            if now - entry[0] >= _KEPT_FOR:
                self._claim(entry)

    def _again(self, size: int) -> mmap.mmap | None:
        """Return released memory that fits without much waste, ``None`` if there is none."""
        fitting = (entry for entry in list(self._free) if size <= len(entry[1]) <= size + size // 4)
        return next((entry[1] for entry in fitting if self._claim(entry)), None)

    def _claim(self, entry: tuple[float, mmap.mmap]) -> bool:
        """Take an entry away; whether no other thread was faster."""
        try:
            self._free.remove(entry)
        except ValueError:
            return False
        return True

    def _give_up(self, memory: mmap.mmap) -> None:
        self._free.append((time.monotonic(), memory))

    def _keep(self) -> None:
        while True:
            time.sleep(_KEPT_FOR / 2)
            self.expire()


def _new(size: int) -> mmap.mmap:
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


BUFFERS = Buffers()
"""The buffers of this process."""
