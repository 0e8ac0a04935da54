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
from workergroups_agent.executor.observe import SessionEnded
from workergroups_agent.executor.untrusted import refuse_to_unpickle


def main() -> None:
    """Until Ray or kubelet ends it."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    address = os.environ["WORKERGROUPS_GCS_ADDRESS"]
    exchange = Exchange.from_environment()
    exchange.withdraw()
    wait_for_gcs(address)
    start_raylet(address)
    run(address, exchange)


def run(address: str, exchange: Exchange) -> None:
    """Connect to the raylet of this host, and loop until Ray goes away."""
    try:
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.WARNING)
        refuse_to_unpickle()
        signal.signal(signal.SIGTERM, _leave)  # After Ray, which has a handler of its own.
        Executor(exchange).run_forever()
    except SessionEnded as error:
        sys.exit(f"joining Ray anew: {error}")
    finally:
        exchange.withdraw()


def _leave(_signal: int, _frame: FrameType | None) -> None:
    sys.exit(0)


if __name__ == "__main__":
    main()
