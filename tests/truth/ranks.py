"""The ranks' class, shipped in a ConfigMap: it says which process it is, and since when."""

import os
import time

import workergroups


class Rank(workergroups.Worker):
    """Does nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.born = time.time()

    def look(self) -> dict[str, object]:
        """The process, its pod, and when its constructor was done."""
        return {"pid": os.getpid(), "pod": os.uname().nodename, "born": self.born}
