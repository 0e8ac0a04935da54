"""A file for the kubelet's liveness probe: its modification time is in the future while the process works.

A shell can compare it with a file that it has just written, so the probe needs no other program in the image.
"""

import os
import time
from pathlib import Path

from workergroups_api.vocabulary import Variable

# A process that does not prolong its file for this long counts as hung.
ALIVE_SECONDS = 15.0


class LivenessFile:
    """The file; a process prolongs it from its main loop."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def from_environment(cls) -> "LivenessFile":
        """Return the file that the container's probe checks."""
        return cls(Path(os.environ[Variable.ALIVE]))

    def prolong(self) -> None:
        """Count as alive for ALIVE_SECONDS from now on."""
        until = time.time() + ALIVE_SECONDS
        try:
            os.utime(self._path, (until, until))
        except FileNotFoundError:
            self._path.touch()
            os.utime(self._path, (until, until))
