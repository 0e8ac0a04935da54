"""What our own processes log in a history: no news unless it goes wrong."""

import logging
from collections import deque

LINES = 400
OURS = ("workergroups_operator", "workergroups_agent", "workergroups_api", "simulation")


class Diary(logging.Handler):
    """Keeps the last lines, of this process's loggers and threads alike."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: deque[str] = deque(maxlen=LINES)
        self.setFormatter(logging.Formatter("%(asctime)s.%(msecs)03d %(threadName)s %(message)s", "%H:%M:%S"))

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one line of it, without its traceback."""
        record = logging.makeLogRecord({**record.__dict__, "exc_info": None, "exc_text": None, "stack_info": None})
        self.lines.append(self.format(record).replace("\n", " ")[:400])

    def keep(self) -> None:
        """Everything goes here, and nowhere else; of others, warnings only."""
        logging.basicConfig(level=logging.WARNING, handlers=[self], force=True)
        for name in OURS:
            logging.getLogger(name).setLevel(logging.INFO)
