"""What a command in a container reads, and how large the terminal is that it believes to be on."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from websocket import WebSocketException

from . import exec_protocol
from .errors import ClientError

if TYPE_CHECKING:
    from kubernetes.stream.ws_client import WSClient

Read = Callable[[], bytes]
"""Waits until there is more; nothing is the end."""
Size = Callable[[], os.terminal_size]


def feed(stream: WSClient, read: Read) -> None:
    """Hand on to the command what is read, until that ends.

    By a thread of its own: a command that waits until its output is taken reads nothing meanwhile.

    Raises:
        ClientError: The API server is too old to tell the command that its input has ended.
    """
    if stream.subprotocol != exec_protocol.CLOSES_STDIN:
        raise ClientError("the API server cannot pass input to a command: this needs Kubernetes 1.30 or later")
    threading.Thread(target=_carry, args=(stream, read), daemon=True).start()


def _carry(stream: WSClient, read: Read) -> None:
    # Who reads the command's output sees that it has ended.
    with contextlib.suppress(OSError, WebSocketException):
        while data := read():
            stream.write_channel(exec_protocol.STDIN, data)
        stream.close_channel(exec_protocol.STDIN)


class Window:
    """Tells the command how large its terminal is, whenever that has changed."""

    def __init__(self, stream: WSClient, size: Size) -> None:
        self._stream, self._size = stream, size
        self._told: os.terminal_size | None = None

    def update(self) -> None:
        """Tell it, if there is anything to tell."""
        now = self._size()
        if now == self._told:
            return
        self._told = now
        # A command that has ended has no terminal.
        with contextlib.suppress(OSError, WebSocketException):
            self._stream.write_channel(
                exec_protocol.RESIZE, json.dumps({"Width": now.columns, "Height": now.lines}).encode()
            )
