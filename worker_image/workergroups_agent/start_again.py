"""Run `ray start`, and again in the same container when the head is lost.

In a pod, it is called as `python3 -m workergroups_agent.start_again start ...`.

Each time that a head is lost with its state, the raylets of its workers end. Without this their containers would end
with them, and kubelet waits for longer each time before it starts a container again: for five minutes after six times.
Here a worker ends what is left of the old node in its container, and joins the next head. A head that keeps its state
(`gcs_storage`) starts again in the same way, and its workers only wait for it.

A node that ends soon after it has joined, or never joins, still ends its container: kubelet then counts, waits and
reports.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from workergroups.node import notice
from workergroups.node.own_processes import PROCESSES, all_pids, container, read

# For so long a node must have been part of a cluster. A shorter life is no lost head, but something that is wrong here.
JOINED_SECONDS = 10.0
# For so long the kernel may take to end processes, for instance while it frees a device's memory.
END_SECONDS = 30.0
_POLL_SECONDS = 0.05
# How `ray start --block` exits if one of its processes has ended on its own. After `ray stop`, it goes on.
_RAY_ENDED = 1


class End(NamedTuple):
    """How a `ray start` has ended."""

    code: int
    joined_seconds: float | None
    """For how long its node was part of a cluster, in seconds; None if it never joined."""


def gcs_of(arguments: Sequence[str]) -> str | None:
    """Return the address of the GCS that a worker joins; None on the head."""
    return next((each.partition("=")[2] for each in arguments if each.startswith("--address=")), None)


def starts_again(end: End) -> bool:
    """Return whether the node starts again in its container."""
    return end.code == _RAY_ENDED and (end.joined_seconds or 0.0) >= JOINED_SECONDS


def others(own: int, processes: Path = PROCESSES) -> list[int]:
    """Return the processes of this one's container that have started later than this one, and still run.

    What the container's command has started before Ray, such as a daemon, stays.
    """
    group, start = container(own, processes), read(own, processes).start
    return [pid for pid in all_pids(processes) if _runs_since(start, group, processes, pid)]


def end_others(seconds: float = END_SECONDS) -> list[int]:
    """Kill what has started in this container since Ray has; return the processes that do not end."""
    deadline = time.monotonic() + seconds
    while (left := others(os.getpid())) and time.monotonic() < deadline:
        for pid in left:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)
    return left


def run(ray_start: Callable[[Callable[[], None]], None]) -> End:
    """Run `ray start` in a child process until it ends; it gets a function to call when its node has joined."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        ray_start(lambda: _tell_join(write))
        sys.exit()
    os.close(write)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with open(read) as pipe:
        joined = pipe.readline()
    return End(code, time.monotonic() - float(joined) if joined else None)


def main() -> int:
    """Run `ray start`, as often as the head is lost; return its exit code."""
    notice.begin()
    gcs = gcs_of(sys.argv)
    while starts_again(end := run(partial(_ray_start, gcs))):
        if left := end_others():
            print(f"this container ends, since these of its processes do not: {left}", flush=True)
            break
        print(f"Ray has ended after {end.joined_seconds:.0f} s, and starts again in this container", flush=True)
    return end.code if end.code >= 0 else 128 - end.code


def _ray_start(gcs: str | None, joined: Callable[[], None]) -> None:
    from workergroups_agent import ray_start  # it imports Ray

    ray_start.main(gcs, joined)


def _tell_join(pipe: int) -> None:
    os.write(pipe, f"{time.monotonic()}\n".encode())


def _runs_since(start: int, group: str, processes: Path, pid: int) -> bool:
    try:
        process = read(pid, processes)
        return process.start > start and not process.ended and container(pid, processes) == group
    except OSError:  # it has ended
        return False


if __name__ == "__main__":
    sys.exit(main())
