"""Start the executor, and restart it when it ends or hangs."""

import logging
import os
import select
import subprocess
import sys
import time

from workergroups_agent.listening import wait_for_gcs
from workergroups_common.backoff import Backoff

LOGGER = logging.getLogger(__name__)

CHILD = ("-m", "workergroups_agent.executor.driver")
# An executor that is silent for this long hangs: all deadlines of one look together are shorter.
HANG_SECONDS = 60.0
# Its first look may take this long: on a busy node, importing Ray and waiting for the raylet take minutes.
START_SECONDS = 300.0
# The first and the longest pause before a restart. After STEADY_SECONDS without a failure, the pauses start over.
FIRST_DELAY_SECONDS = 0.5
LAST_DELAY_SECONDS = 20.0
STEADY_SECONDS = 60.0


def supervise(address: str) -> None:
    """Keep an executor running. Never returns.

    The executor is started once the GCS listens: its imports would take CPU from `ray start`.
    """
    failures = 0
    while True:
        wait_for_gcs(address)
        began = time.monotonic()
        status = run_once([sys.executable, *CHILD, address], START_SECONDS, HANG_SECONDS)
        failures = 1 if time.monotonic() - began > STEADY_SECONDS else failures + 1
        delay = Backoff(FIRST_DELAY_SECONDS, LAST_DELAY_SECONDS).after(failures)
        LOGGER.warning("the executor ended with status %d; restarting it in %g s", status, delay)
        time.sleep(delay)


def run_once(command: list[str], start_seconds: float, hang_seconds: float) -> int:
    """Run the command until it ends or hangs; return its exit status.

    Args:
        command: It gets a pipe's number as its last argument, and shows that it is alive by writing to it. SIGKILL ends
            it if it hangs.
        start_seconds: The time until its first heartbeat.
        hang_seconds: The time from each to the next.
    """
    reader, writer = os.pipe()
    with subprocess.Popen([*command, str(writer)], pass_fds=[writer]) as child:
        os.close(writer)
        heard = _hear(reader, start_seconds)
        while heard:
            heard = _hear(reader, hang_seconds)
        if heard is None:
            LOGGER.warning("the executor hangs: no heartbeat in time")
        child.kill()
    os.close(reader)
    return child.returncode


def _hear(reader: int, seconds: float) -> bytes | None:
    """Return what arrived in time: None if nothing did, empty once the other side is closed."""
    ready, _, _ = select.select([reader], [], [], seconds)
    return os.read(reader, 4096) if ready else None
