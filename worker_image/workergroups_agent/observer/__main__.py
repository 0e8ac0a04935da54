"""Run the observer: connect to the GCS and loop; when another GCS has replaced it, connect to that one."""

import logging
import os
import signal
import sys
import time
from collections.abc import Callable

from workergroups.ray_private.gcs import Gcs, SessionEnded
from workergroups_agent.exchange import Exchange
from workergroups_agent.listening import listens
from workergroups_agent.liveness_file import LivenessFile
from workergroups_agent.observer.loop import Observer
from workergroups_api.vocabulary import Variable

LOGGER = logging.getLogger(__name__)
RETRY_SECONDS = 0.2


def main() -> None:
    """Observe until the kubelet ends the container."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    run(os.environ[Variable.GCS_ADDRESS], Exchange.from_environment(), LivenessFile.from_environment().prolong)


def run(address: str, exchange: Exchange, is_alive: Callable[[], object]) -> None:
    """Observe one life of the Ray cluster after another. Never returns.

    Args:
        address: Where the GCS listens.
        exchange: Where orders come from, and where reports go.
        is_alive: Called continually, also while no GCS answers: only a process that hangs should be restarted.
    """
    told: str | None = None
    try:
        while True:
            is_alive()
            exchange.withdraw()
            if (why := _observe_one(address, exchange, is_alive)) != told:
                LOGGER.warning("looking for a GCS: %s", why)
                told = why
            time.sleep(RETRY_SECONDS)
    finally:
        exchange.withdraw()


def _observe_one(address: str, exchange: Exchange, is_alive: Callable[[], object]) -> str:
    """Observe the GCS at that address until it is gone; return why observing ended, or could not begin."""
    if not listens(address):
        return f"nothing listens at {address}"
    try:
        Observer(Gcs.connect(address), exchange).run_forever(is_alive)
    except SessionEnded as error:
        return str(error)
    except Exception as error:
        return f"the GCS at {address} cannot be asked: {type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
