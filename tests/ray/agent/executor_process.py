"""An observer and an executor as they run in pods: each in its own process."""

import subprocess
import sys
import time

from tests.ray.agent.planned import pool, write_orders
from workergroups_agent.exchange import Exchange

OBSERVER = """
import signal, sys
from pathlib import Path
from workergroups_agent.exchange import Exchange
from workergroups_agent.observer.__main__ import run
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
run(sys.argv[1], Exchange(Path(sys.argv[2])), lambda: None)
"""
EXECUTOR = """
import sys
from workergroups_agent.executor.driver import run
run(sys.argv[1], lambda: None)
"""


class Process:
    """The agent of a cluster: an observer, and an executor that carries out what it orders."""

    def __init__(self, cluster, directory, executor=EXECUTOR):
        self.exchange = Exchange(directory)
        self.log = directory / "log"
        with self.log.open("w") as log:
            arguments = [cluster.address, str(directory)]
            self.observer, self.process = (
                subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=log, stderr=log)
                for program in (OBSERVER, executor)
            )

    def until(self, is_so, *groups, seconds=60):
        deadline = time.monotonic() + seconds
        while self.exchange.read_heartbeat() is None:
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.1)
        write_orders(self.exchange, self.exchange.read_heartbeat().session, groups, (pool(),))
        while True:
            reports = self.exchange.read_reports()
            if reports is not None and {group.name for group in groups} == set(reports.groups) and is_so(reports):
                return reports
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, f"still: {reports}\n{self.log.read_text()}"
            time.sleep(0.1)

    def kill(self):
        self.observer.kill()
        self.process.kill()
