"""The executor's process: `python3 -m workergroups_agent.executor.driver ADDRESS PIPE`, started by `supervise`.

It ends when Ray goes away, or when the reader of the pipe does.
"""

import logging
import os
import signal
import sys
from collections.abc import Callable

import ray

from workergroups.naming import NAMESPACE
from workergroups.ray_private.gcs import SessionEnded
from workergroups.ray_private.untrusted import refuse_to_unpickle
from workergroups_agent.executor.loop import Executor


def main() -> None:
    """Run the executor; write to the pipe after each look at Ray, as a heartbeat."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    address, pipe = sys.argv[1], int(sys.argv[2])
    run(address, lambda: os.write(pipe, b"."))


def run(address: str, beat: Callable[[], object]) -> None:
    """Connect to the raylet of this host, and act until Ray goes away."""
    try:
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.WARNING)
        refuse_to_unpickle()
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # After Ray, which has its own handler.
        logging.info("the executor is connected to Ray")
        Executor().run_forever(beat)
    except SessionEnded as error:
        sys.exit(f"the executor ends: {error}")


if __name__ == "__main__":
    main()
