"""Check whether a GCS listens before Ray connects to it: each of Ray's own attempts takes 15 seconds."""

import logging
import socket
import threading
import time

LOGGER = logging.getLogger(__name__)
TIMEOUT_SECONDS = 2.0
POLL_SECONDS = 0.1
LOG_SECONDS = 10.0


def listens(address: str) -> bool:
    """Return whether a process accepts connections at HOST:PORT."""
    try:
        with socket.create_connection(host_and_port(address), timeout=TIMEOUT_SECONDS):
            return True
    except OSError:
        return False


def host_and_port(address: str) -> tuple[str, int]:
    """Return the two parts of HOST:PORT."""
    host, _, port = address.rpartition(":")
    return host, int(port)


def wait_for_gcs(address: str) -> None:
    """Wait until the GCS accepts connections, without a deadline: the operator has one, and reports why it waits."""
    began = logged = time.monotonic()
    while not listens(address):
        now = time.monotonic()
        if now - logged > LOG_SECONDS:
            logged = now
            LOGGER.info("waiting for the GCS at %s for %.0f s", address, now - began)
        time.sleep(POLL_SECONDS)


def listen_in_background(port: int) -> None:
    """Accept connections at a port of all addresses, and close them, for the life of this process."""
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    try:
        server = socket.create_server(("", port), family=family, dualstack_ipv6=family == socket.AF_INET6)
    except OSError as error:
        LOGGER.warning("cannot listen on port %d: %s; workers will wait for the GCS", port, error)
        return
    threading.Thread(target=_close_what_comes, args=[server], daemon=True).start()


def _close_what_comes(server: socket.socket) -> None:
    while True:
        try:
            server.accept()[0].close()
        except OSError:
            time.sleep(POLL_SECONDS)
