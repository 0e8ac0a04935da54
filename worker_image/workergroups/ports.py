"""Free ports of this machine."""

from __future__ import annotations

import contextlib
import socket


def bind_any_port() -> socket.socket:
    """Bind a free port for IPv6 and IPv4 at once, or for IPv4 alone on a host without IPv6."""
    if socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):
            return _bind(socket.AF_INET6, "::")
    return _bind(socket.AF_INET, "0.0.0.0")


def _bind(family: socket.AddressFamily, address: str) -> socket.socket:
    reservation = socket.socket(family, socket.SOCK_STREAM)
    try:
        reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            reservation.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        reservation.bind((address, 0))
    except OSError:
        reservation.close()
        raise
    return reservation
