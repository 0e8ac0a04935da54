"""The port where a group's ranks meet (``MASTER_PORT``): rank 0's process chooses it and keeps it free."""

from __future__ import annotations

import socket

import ray

from workergroups.ports import bind_any_port

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
