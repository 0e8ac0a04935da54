"""Ask a fork server to take the place of this process."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SECONDS = 2.0
"""How long a process waits for each answer before it starts cold."""
READY, GO = b"r", b"g"


def forked_instead(
    path: Path, environment: Mapping[str, str], command: Sequence[str], descriptor: int | None = None
) -> bool:
    """Let the fork server at that path start this command as a fork of itself; return whether it has.

    The fork has the standard streams and the working directory of this process, and the descriptor whose number is at
    the end of the command's last argument, if there is one. It waits for our last word, so that it never runs if we
    have lost patience, however late it comes.
    """
    process = {"command": list(command), "environment": dict(environment), "directory": os.getcwd(), "pid": os.getpid()}
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.settimeout(SECONDS)
        server.connect(str(path))
        _send(server, process, (0, 1, 2) if descriptor is None else (0, 1, 2, descriptor))
        if server.recv(1) == READY:
            server.sendall(GO)
            return True
    return False


def _send(server: socket.socket, message: Mapping[str, Any], descriptors: Sequence[int]) -> None:
    payload = json.dumps(message).encode()
    socket.send_fds(server, [len(payload).to_bytes(4, "big")], list(descriptors))
    server.sendall(payload)


def receive(client: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Return a client's message and the descriptors that came with it.

    Raises:
        OSError: The client is gone, or too slow.
        ValueError: The message is none of ours.
    """
    size, descriptors, _, _ = socket.recv_fds(client, 4, 4)
    payload = bytearray()
    while len(payload) < int.from_bytes(size, "big"):
        if not (piece := client.recv(65536)):
            raise ConnectionError("the client is gone")
        payload += piece
    message = json.loads(payload)
    if not isinstance(message, dict):
        raise ValueError("not a message")
    return message, descriptors
