"""Whether a GCS listens: to be asked before anything of Ray is, whose own attempts to connect take 15 seconds each."""

import logging
import socket
import threading
import time

LOGGER = logging.getLogger(__name__)
TIMEOUT_SECONDS = 2.0
POLL_SECONDS = 0.1
LOG_SECONDS = 10.0


def listens(address: str) -> bool:
    """Return whether something takes connections at HOST:PORT now."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=TIMEOUT_SECONDS):
            return True
    except OSError:
        return False


def wait_for_gcs(address: str) -> None:
    """Wait until the GCS takes connections. No deadline: the operator has one, and reports what it waits for."""
    began = logged = time.monotonic()
    while not listens(address):
        now = time.monotonic()
        if now - logged > LOG_SECONDS:
            logged = now
            LOGGER.info("waiting for the GCS at %s for %.0f s", address, now - began)
        time.sleep(POLL_SECONDS)


def listen_in_background(port: int) -> None:
    """Take connections at a port of all addresses, and close them, as long as this process lives."""
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    try:
        server = socket.create_server(("", port), family=family, dualstack_ipv6=family == socket.AF_INET6)
    except OSError as error:
        LOGGER.warning("port %d cannot be listened at: %s; workers will wait for the GCS", port, error)
        return
    threading.Thread(target=_close_what_comes, args=[server], daemon=True).start()


def _close_what_comes(server: socket.socket) -> None:
    while True:
        try:
            server.accept()[0].close()
        except OSError:
            time.sleep(POLL_SECONDS)
