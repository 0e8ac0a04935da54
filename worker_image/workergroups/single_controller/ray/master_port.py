"""The port where a group's ranks meet (``MASTER_PORT``): rank 0's process chooses it and keeps it free."""

from __future__ import annotations

import contextlib
import socket

import ray

_reservation: socket.socket | None = None


def reserve_master() -> tuple[str, str]:
    """Return the address of this node, and a port that stays reserved for this process until it ends.

    The reservation is a socket that is bound but does not listen. The kernel never assigns such a port to a process
    that asks for any free port. But a second socket can bind it and listen on it if both set SO_REUSEADDR, as the
    TCPStore of ``torch.distributed`` does. So no other process can take the port between its choice and its use.
    """
    global _reservation
    if _reservation is None:
        _reservation = bind_any_port()
    address: str = ray.util.get_node_ip_address()
    return address.strip("[]"), str(_reservation.getsockname()[1])


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
