"""Keep the executor running for the life of the head's container: `python3 -m workergroups_agent.executor ADDRESS`.

This process imports no Ray; only the process that it starts does.
"""

import logging
import sys

from workergroups_agent.check_image import HEAD_RUNS_PORT
from workergroups_agent.executor.supervise import supervise
from workergroups_agent.listening import listen_in_background


def main() -> None:
    """Run until the container ends."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    listen_in_background(HEAD_RUNS_PORT)
    supervise(sys.argv[1])


if __name__ == "__main__":
    main()
