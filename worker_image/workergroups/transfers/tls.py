"""TLS for connections between the processes of a Ray cluster, with Ray's own certificates, if it uses them."""

from __future__ import annotations

import os
import socket
import ssl


def is_used() -> bool:
    """Return whether Ray's processes talk to each other by TLS."""
    return os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true")


def accepted(connection: socket.socket) -> socket.socket:
    """Return a connection from another process.

    Raises:
        OSError: It has no certificate of the cluster's.
    """
    return _context(ssl.PROTOCOL_TLS_SERVER).wrap_socket(connection, server_side=True) if is_used() else connection


def connected(connection: socket.socket, host: str) -> socket.socket:
    """Return a connection to another process.

    Raises:
        OSError: It has no certificate of the cluster's for this address.
    """
    return _context(ssl.PROTOCOL_TLS_CLIENT).wrap_socket(connection, server_hostname=host) if is_used() else connection


def _context(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(os.environ["RAY_TLS_CA_CERT"])
    context.load_cert_chain(os.environ["RAY_TLS_SERVER_CERT"], os.environ["RAY_TLS_SERVER_KEY"])
    return context
