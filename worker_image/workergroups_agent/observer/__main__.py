"""Run the observer: connect to the GCS, then loop; when another GCS has taken its place, connect to that one."""

import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType

from workergroups_agent.alive import SignOfLife
from workergroups_agent.exchange import Exchange
from workergroups_agent.gcs import Gcs, SessionEnded
from workergroups_agent.observer.loop import Observer

LOGGER = logging.getLogger(__name__)
RETRY_SECONDS = 0.5


def main() -> None:
    """Observe until kubelet ends the container."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    signal.signal(signal.SIGTERM, _leave)
    run(os.environ["WORKERGROUPS_GCS_ADDRESS"], Exchange.from_environment(), SignOfLife.from_environment().prolong)


def run(address: str, exchange: Exchange, is_alive: Callable[[], object]) -> None:
    """Observe one life of the Ray cluster after the other. Never returns.

    Args:
        address: Where the GCS listens.
        exchange: From where orders come, and where reports go.
        is_alive: Called again and again, also while no GCS answers: only a process that hangs should be restarted.
    """
    told = ""
    while True:
        is_alive()
        exchange.withdraw()
        try:
            gcs = Gcs.connect(address)
            LOGGER.info("connected to the GCS at %s", address)
            Observer(gcs, exchange).run_forever(is_alive)
        except SessionEnded as error:
            LOGGER.info("looking for the next GCS: %s", error)
        except Exception as error:
            if str(error) != told:
                told = str(error)
                LOGGER.warning("the GCS at %s cannot be asked: %s: %s", address, type(error).__name__, told)
        finally:
            exchange.withdraw()
        time.sleep(RETRY_SECONDS)


def _leave(_signal: int, _frame: FrameType | None) -> None:
    sys.exit(0)


if __name__ == "__main__":
    main()
