"""Keep the executor running for the life of the head's container: `python3 -m workergroups_agent.executor ADDRESS`.

Standard library only: until the GCS listens at ADDRESS, starting Ray needs the processor more than this does.
"""

import logging
import os
import sys

from workergroups_agent.executor.supervise import supervise

# So much does what the head's users run go first.
NICE = 5


def main() -> None:
    """Run until the container ends."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    os.nice(NICE)
    supervise(sys.argv[1])


if __name__ == "__main__":
    main()
