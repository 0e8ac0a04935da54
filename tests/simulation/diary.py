"""Keep what our own processes log in a history, to print it if the history fails."""

import logging
from collections import deque
from datetime import datetime

LINES = 400
OURS = ("workergroups_operator", "workergroups_agent", "workergroups_api", "tests.simulation")


class Diary(logging.Handler):
    """Keeps the last lines of all loggers and threads of this process."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: deque[str] = deque(maxlen=LINES)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one line of the record, without its traceback."""
        when = datetime.fromtimestamp(record.created).strftime("%H:%M:%S.%f")
        self.lines.append(f"{when} {record.threadName} {record.getMessage()}".replace("\n", " ")[:400])

    def keep(self) -> None:
        """Send our own records here only, and of other loggers only the warnings."""
        logging.basicConfig(level=logging.WARNING, handlers=[self], force=True)
        for name in OURS:
            logging.getLogger(name).setLevel(logging.INFO)
