"""Measure the memory of a process from outside while it does something."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

_PAUSE = 0.002


class Resident(NamedTuple):
    """Resident bytes of a process."""

    own: int
    """Private memory (RssAnon)."""
    with_shared: int
    """Pages of shared memory, such as the object store's, that it has touched (RssShmem)."""


def resident(pid: int) -> Resident:
    """Return what the kernel reports now."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    own, shared = (int(fields[name].split()[0]) * 1024 for name in ("RssAnon", "RssShmem"))
    return Resident(own, own + shared)


class PeakGrowth:
    """The most by which a process's memory grows within this block."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._before = self._peak = resident(self._pid)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def growth(self) -> Resident:
        """The highest value, less the value before the block."""
        return Resident(self._peak.own - self._before.own, self._peak.with_shared - self._before.with_shared)

    def _watch(self) -> None:
        while not self._stop.wait(_PAUSE):
            now = resident(self._pid)
            self._peak = Resident(*(max(pair) for pair in zip(self._peak, now, strict=True)))
