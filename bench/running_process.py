"""What the kernel reports about a process: its CPU time and memory."""

import asyncio
import os
import time
from pathlib import Path


class RunningProcess:
    """A process, by its id."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    @property
    def cpu_seconds(self) -> float:
        """Return the CPU time since its start."""
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def resident_mib(self) -> float:
        """Return its private memory."""
        return self._memory_mib("VmRSS")

    @property
    def peak_mib(self) -> float:
        """Return the most memory that it has used."""
        return self._memory_mib("VmHWM")

    def _memory_mib(self, name: str) -> float:
        status = Path(f"/proc/{self._pid}/status").read_text()
        return int(status.partition(f"{name}:")[2].split()[0]) / 1024

    async def percent(self, seconds: float) -> float:
        """Return the percentage of a core that it uses during the next seconds."""
        before, began = self.cpu_seconds, time.monotonic()
        await asyncio.sleep(seconds)
        return 100 * (self.cpu_seconds - before) / (time.monotonic() - began)
