"""Run another program as soon as a CPU of this machine is idle: `python3 when_idle.py SECONDS PROGRAM ARGUMENT...`.

The program starts after that many seconds at the latest. This needs only the standard library, since several of these
processes wait while a Ray cluster starts.
"""

import os
import sys
import time
from pathlib import Path

POLL_SECONDS = 0.5


def idle_seconds() -> float:
    """Return for how many seconds all CPUs together have been idle since the machine started."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(fields[4]) / os.sysconf("SC_CLK_TCK")


def wait_for_idle_cpu(seconds: float) -> None:
    """Wait until the CPUs together are idle as much as one idle CPU would be, or for that many seconds."""
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
