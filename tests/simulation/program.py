"""The operator in its own process, to measure its memory, and whether it ends.

`python -m tests.simulation.program NAMESPACE...` runs it; KUBECONFIG says where the API server is.
"""

import asyncio
import logging
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.simulation.operator import serve


class Program:
    """One life of the operator, as `Process` is for an operator in this process."""

    def __init__(self, namespaces: Sequence[str], log: Path) -> None:
        self._command = [sys.executable, "-m", "tests.simulation.program", *namespaces]
        self._log = log
        self._running: subprocess.Popen[bytes] | None = None

    def start(self) -> "Program":
        """Start it, without waiting."""
        # The kernel kills it when this process ends.
        command = ["setpriv", "--pdeathsig=KILL", *self._command]
        with self._log.open("ab") as log:
            self._running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._running is not None and self._running.poll() is None

    @property
    def failure(self) -> Exception | None:
        """Why it ended without being told to, if it did."""
        if self._running is None or self.is_alive:
            return None
        return RuntimeError(f"the operator ended with exit code {self._running.returncode}:\n{self.last_lines()}")

    def last_lines(self) -> str:
        """Return the end of its log."""
        return self._log.read_text(errors="replace")[-4000:]

    def peak_mib(self) -> float:
        """Return the most memory that it has used, in MiB."""
        return self._memory_mib("VmHWM")

    def resident_mib(self) -> float:
        """Return the memory that it uses, in MiB."""
        return self._memory_mib("VmRSS")

    def _memory_mib(self, name: str) -> float:
        assert self._running is not None
        status = Path(f"/proc/{self._running.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith(f"{name}:")]
        return int(line.split()[1]) / 1024

    def kill(self) -> None:
        """End it where it is."""
        if self._running is not None:
            self._running.kill()
            self._running.wait()
            self._running = None

    async def stop(self, seconds: float = 10.0) -> None:
        """End it as kubelet would: SIGTERM first, and SIGKILL if that does not end it."""
        if self._running is not None:
            self._running.send_signal(signal.SIGTERM)
            try:
                await asyncio.to_thread(self._running.wait, seconds)
            except subprocess.TimeoutExpired:
                self.kill()
            self._running = None


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    asyncio.run(serve(sys.argv[1:]))
