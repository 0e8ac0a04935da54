"""Keep the executor running for the life of the head's container: `python3 -m workergroups_agent.executor ADDRESS`.

Standard library only: of the two processes, only the one that it starts needs Ray.
"""

import logging
import sys

from workergroups_agent.executor.supervise import supervise


def main() -> None:
    """Run until the container ends."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    supervise(sys.argv[1])


if __name__ == "__main__":
    main()
