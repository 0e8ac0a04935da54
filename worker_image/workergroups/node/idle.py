"""Wait until this machine has a CPU to spare."""

from __future__ import annotations

import os
import time
from pathlib import Path

POLL_SECONDS = 0.5


def idle_seconds() -> float:
    """Return for how many seconds all CPUs together have been idle since the machine started."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(fields[4]) / os.sysconf("SC_CLK_TCK")


def wait_for_idle_cpu(seconds: float) -> bool:
    """Wait until the CPUs together are idle as much as one idle CPU would be, or for that many seconds.

    Returns:
        Whether they are.
    """
    now = time.monotonic()
    deadline = now + seconds
    while now < deadline:
        began, idle = now, idle_seconds()
        time.sleep(POLL_SECONDS)
        now = time.monotonic()
        if idle_seconds() - idle >= now - began:
            return True
    return False
