"""When the kernel has ended processes of a container for lack of memory, and whether that explains a rank's death.

Ray does not know why a process was killed. The kernel counts such kills for each control group, without saying whom.
So `ray start` watches the counter on each node, and writes into Ray's GCS when it has grown. If the rank's process
ended at that time, by the clock of the same node, memory is the likeliest reason.
"""

from __future__ import annotations

import json
import select
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

KV_NAMESPACE = "workergroups-memory-kills"
"""The namespace of the GCS's key-value store; the keys are pods."""
MESSAGE = (
    "the kernel ended a process of this pod for lack of memory when this rank died: request more memory for the pool's "
    "nodes, or let the ranks and their child processes use less"
)
GROUPS = Path("/sys/fs/cgroup")
# Of control groups version 2 and 1. Both have a line `oom_kill NUMBER`.
_FILES = ("memory.events", "memory/memory.oom_control")
# The kernel reports a change of the first file at once.
LOOK_SECONDS = 1.0
# How long before the end of a rank the kernel may have killed it: it first frees the memory of the process.
BEFORE_SECONDS = 10.0
# How long after that end the counter's growth may be noticed.
AFTER_SECONDS = 2 * LOOK_SECONDS
_MOST_TIMES = 8
_MOST_BYTES = 1024


def kills(groups: Path = GROUPS) -> int:
    """Return how many processes of this container the kernel has ended for lack of memory; 0 if it does not count."""
    path = _counter(groups)
    try:
        return 0 if path is None else _number(path.read_text())
    except OSError:
        return 0


def watch(tell: Callable[[Sequence[float]], None], groups: Path = GROUPS) -> None:
    """Tell when the kernel ended processes, in seconds since the epoch, each time that it has ended one.

    Return at once if it does not count them, or when the counter cannot be read any more.
    """
    path = _counter(groups)
    if path is None:
        return
    times: list[float] = []
    try:
        with path.open() as file:
            before = _number(file.read())
            while True:
                _wait(file)
                file.seek(0)
                now = _number(file.read())
                if now > before:
                    times = [*times, time.time()][-_MOST_TIMES:]
                    tell(times)
                before = now
    except OSError:
        return


def to_record(times: Sequence[float]) -> bytes:
    """Return the record of a pod for the key-value store."""
    return json.dumps(list(times)).encode()


def read(record: bytes | None) -> tuple[float, ...]:
    """Return the times in a record; none if it is not one of ours."""
    if record is None or len(record) > _MOST_BYTES:
        return ()
    try:
        times = json.loads(record)
    except (ValueError, RecursionError):
        return ()
    is_ours = isinstance(times, list) and all(type(each) in (int, float) for each in times)
    return tuple(times) if is_ours else ()


def explain(times: Sequence[float], ended: float) -> bool:
    """Return whether the kernel ended a process when this one ended; both by the clock of the node."""
    return any(-AFTER_SECONDS <= ended - at <= BEFORE_SECONDS for at in times)


def _wait(file: TextIO) -> None:
    """Wait until the kernel reports a change of the file, or for LOOK_SECONDS: not each kind of file reports any."""
    changes = select.poll()
    changes.register(file, select.POLLPRI)
    changes.poll(LOOK_SECONDS * 1000)


def _counter(groups: Path) -> Path | None:
    return next((path for name in _FILES if (path := groups / name).exists()), None)


def _number(text: str) -> int:
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == "oom_kill":
            return int(value)
    return 0
