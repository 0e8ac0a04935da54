"""What our own processes log in a history: no news unless it goes wrong."""

import logging
from collections import deque
from datetime import datetime

LINES = 400
OURS = ("workergroups_operator", "workergroups_agent", "workergroups_api", "tests.simulation")


class Diary(logging.Handler):
    """Keeps the last lines, of this process's loggers and threads alike."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: deque[str] = deque(maxlen=LINES)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one line of it, without its traceback."""
        when = datetime.fromtimestamp(record.created).strftime("%H:%M:%S.%f")
        self.lines.append(f"{when} {record.threadName} {record.getMessage()}".replace("\n", " ")[:400])

    def keep(self) -> None:
        """Everything goes here, and nowhere else; of others, warnings only."""
        logging.basicConfig(level=logging.WARNING, handlers=[self], force=True)
        for name in OURS:
            logging.getLogger(name).setLevel(logging.INFO)
