"""How much memory this process holds: exact counts, which need no large margin, unlike what the kernel reports."""

import ctypes
import gc
import sys
from collections.abc import Callable
from dataclasses import dataclass


class _Mallinfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


_mallinfo = ctypes.CDLL(None).mallinfo2
_mallinfo.restype = _Mallinfo


@dataclass(frozen=True)
class Held:
    """Blocks of Python's own allocator (512 bytes at most each), and bytes of malloc, which has the larger ones."""

    blocks: int
    bytes: int

    @classmethod
    def now(cls) -> "Held":
        """Count what is left after a garbage collection."""
        gc.collect()
        info = _mallinfo()
        return cls(sys.getallocatedblocks(), info.uordblks + info.hblkhd)

    @property
    def is_nothing(self) -> bool:
        """Whether this is what Python itself keeps now and then, such as a larger list of free objects."""
        return self.blocks < 1000 and self.bytes < 16_384


def retained(work: Callable[[int], object], times: int) -> Held:
    """Return what `times` calls of `work(number)` leave behind, once some calls have filled the caches."""
    for number in range(times // 10):
        work(number)
    before = Held.now()
    for number in range(times):
        work(number)
    after = Held.now()
    return Held(after.blocks - before.blocks, after.bytes - before.bytes)


def leaves_nothing(measured: Callable[[], Held]) -> bool:
    """Tell whether one of three measurements finds nothing: a leak is there each time.

    Other things may take memory during one of them: a table of Python's own grows, or xdist's thread receives the
    tests that this process shall run next, hundreds of numbers.
    """
    return any(measured().is_nothing for _ in range(3))
