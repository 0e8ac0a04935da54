"""debugpy on the loopback of a paused process, where an editor or a prompt can attach."""

from __future__ import annotations

import importlib
import os
import socket
import sys
import time
from pathlib import Path
from types import FrameType, ModuleType

LOOPBACK = "127.0.0.1"
FIRST_PORT = 5678
"""debugpy's default. Local rank n of a node listens on port 5678 + n, or on the next free port."""
FIRST_PORTS = 1024
"""How many ports are tried, from the first on."""
_THIRD_PARTY = Path(__file__).resolve().parents[2] / "third_party"
"""On a cluster, the library brings debugpy along."""
_LOOK_SECONDS = 0.1


class Debugpy:
    """debugpy in this process.

    Raises:
        ImportError: debugpy is not installed, or is too old.
    """

    def __init__(self) -> None:
        self._module = _load()
        self.port = 0
        """The port on which it listens; 0 if it does not."""

    def listen(self, local_rank: int) -> None:
        """Start to listen, unless it does already.

        Args:
            local_rank: The rank's number on its node, which determines the port.

        Raises:
            RuntimeError: debugpy cannot listen.
        """
        if not self.port:
            self._module.configure(subProcess=False)  # what a process starts is not debugged
            _, self.port = self._module.listen((LOOPBACK, _free_port(FIRST_PORT + local_rank)))

    @property
    def is_attached(self) -> bool:
        """Whether a debugger is connected."""
        return bool(self._module.is_client_connected())

    def wait_until_attached(self) -> None:
        """Wait until a debugger has connected and has set breakpoints."""
        while not self.is_attached:
            time.sleep(_LOOK_SECONDS)
        self._module.wait_for_client()

    def stop_at(self, frame: FrameType) -> None:
        """Stop before the frame's next line. debugpy's own `breakpoint` stops at its caller."""
        import pydevd  # debugpy's

        pydevd.settrace(suspend=True, trace_only_current_thread=True, patch_multiprocessing=False, stop_at_frame=frame)

    def look_at(self, error: BaseException) -> None:
        """Stop in the frame that raised the exception; return when the user continues."""
        self._module.trigger_exception_handler(error, as_uncaught=False)


def _load() -> ModuleType:
    """Import the debugpy that the library brings along, or else the image's."""
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")  # users cannot change what it warns of
    sys.path.insert(0, str(_THIRD_PARTY))
    try:
        debugpy = importlib.import_module("debugpy")
    finally:
        sys.path.remove(str(_THIRD_PARTY))
    if not hasattr(debugpy, "trigger_exception_handler"):
        raise ImportError(f"debugpy {debugpy.__version__} is older than 1.8.22")
    return debugpy


def _free_port(first: int) -> int:
    for port in range(first, first + FIRST_PORTS):
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
    return 0
