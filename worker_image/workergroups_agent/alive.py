"""A process's sign of life for kubelet: a file whose time of modification lies in the future while the process works.

Any shell can compare it with a file that it has just written, so a probe needs no other program in the image.
"""

import os
import time
from pathlib import Path

from workergroups_api.vocabulary import Variable

# How long a process may do something else before it counts as hung.
ALIVE_SECONDS = 15.0


class SignOfLife:
    """The file; a process prolongs it from the loop without which it is of no use."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def from_environment(cls) -> "SignOfLife":
        """Return the one for which the container's probe looks."""
        return cls(Path(os.environ[Variable.ALIVE]))

    def prolong(self) -> None:
        """Count as alive for another while, from now."""
        until = time.time() + ALIVE_SECONDS
        try:
            os.utime(self._path, (until, until))
        except FileNotFoundError:
            self._path.touch()
            os.utime(self._path, (until, until))
