"""The ranks' class, shipped in a ConfigMap: it reports which process it is, and since when."""

import os
import time

import workergroups


class Rank(workergroups.Worker):
    """Does nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.born = time.time()

    def look(self) -> dict[str, object]:
        """Return the process, its pod, and when its constructor ended."""
        return {"pid": os.getpid(), "pod": os.uname().nodename, "born": self.born}
