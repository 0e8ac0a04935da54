"""Become another program as soon as a CPU of this machine is idle: `python3 when_idle.py SECONDS PROGRAM ARGUMENT...`.

Standard library only: several of these wait while a Ray cluster starts, for that many seconds at most.
"""

import os
import sys
import time
from pathlib import Path

POLL_SECONDS = 0.5


def idle_seconds() -> float:
    """Return the seconds that all CPUs together have been idle, since the machine started."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(fields[4]) / os.sysconf("SC_CLK_TCK")


def wait_for_idle_cpu(seconds: float) -> None:
    """Return when all CPUs together have been idle for as long as one CPU can be, or after that many seconds."""
    now = time.monotonic()
    deadline = now + seconds
    while now < deadline:
        began, idle = now, idle_seconds()
        time.sleep(POLL_SECONDS)
        now = time.monotonic()
        if idle_seconds() - idle >= now - began:
            return


if __name__ == "__main__":
    wait_for_idle_cpu(float(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
