"""An executor as the agent's pod runs it: in a process of its own."""

import subprocess
import sys
import time

from planned import pool, write_orders

from workergroups_agent.exchange import Exchange

# As the agent's container would, but with the raylet that is there.
EXECUTOR = """
import sys
from pathlib import Path
from workergroups_agent.exchange import Exchange
from workergroups_agent.executor.__main__ import run
run(sys.argv[1], Exchange(Path(sys.argv[2])))
"""


class Process:
    """An executor in a process of its own."""

    def __init__(self, cluster, directory, program=EXECUTOR):
        self.exchange = Exchange(directory)
        self.log = directory / "log"
        with self.log.open("w") as log:
            command = [sys.executable, "-c", program, cluster.address, str(directory)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def until(self, is_so, *groups, seconds=60):
        deadline = time.monotonic() + seconds
        while self.exchange.read_pulse() is None:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        write_orders(self.exchange, self.exchange.read_pulse().session, groups, (pool(),))
        while True:
            reports = self.exchange.read_reports()
            if reports is not None and {group.name for group in groups} == set(reports.groups) and is_so(reports):
                return reports
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, f"still: {reports}"
            time.sleep(0.1)
