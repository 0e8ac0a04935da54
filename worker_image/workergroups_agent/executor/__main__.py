"""Run the executor: join the Ray cluster, then loop. If Ray goes away, this process ends, and kubelet restarts it."""

import logging
import os
import signal
import sys
from types import FrameType

import ray

from workergroups.naming import NAMESPACE
from workergroups_agent.exchange import Exchange
from workergroups_agent.executor.join import start_raylet, wait_for_gcs
from workergroups_agent.executor.loop import Executor


def main() -> None:
    """Until Ray or kubelet ends it."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    address = os.environ["WORKERGROUPS_GCS_ADDRESS"]
    exchange = Exchange.from_environment()
    exchange.withdraw_reports()
    wait_for_gcs(address)
    start_raylet(address)
    try:
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.WARNING)
        signal.signal(signal.SIGTERM, _leave)  # After Ray, which has a handler of its own.
        Executor(exchange).run_forever()
    finally:
        exchange.withdraw_reports()


def _leave(_signal: int, _frame: FrameType | None) -> None:
    sys.exit(0)


if __name__ == "__main__":
    main()
