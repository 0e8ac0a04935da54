"""Whether a GCS listens: to be asked before anything of Ray is, whose own attempts to connect take 15 seconds each."""

import socket

TIMEOUT_SECONDS = 2.0


def listens(address: str) -> bool:
    """Return whether something takes connections at HOST:PORT now."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=TIMEOUT_SECONDS):
            return True
    except OSError:
        return False
