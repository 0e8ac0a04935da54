"""The input of a command in a container, and the size of its terminal."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from websocket import WebSocketException

from ..errors import ClientError
from . import exec_protocol

if TYPE_CHECKING:
    from kubernetes.stream.ws_client import WSClient

Read = Callable[[], bytes]
"""Waits for more input; returns nothing at the end."""
Size = Callable[[], os.terminal_size]


def feed(stream: WSClient, read: Read) -> None:
    """Pass input on to the command until the input ends.

    This runs in its own thread, since a command that waits for its output to be read does not read its input.

    Raises:
        ClientError: The API server is too old to tell the command that its input has ended.
    """
    if stream.subprotocol != exec_protocol.CLOSES_STDIN:
        raise ClientError("the API server cannot pass input to a command: this needs Kubernetes 1.30 or later")
    threading.Thread(target=_carry, args=(stream, read), daemon=True).start()


def _carry(stream: WSClient, read: Read) -> None:
    # The reader of the command's output notices that the command has ended.
    with contextlib.suppress(OSError, WebSocketException):
        while data := read():
            stream.write_channel(exec_protocol.STDIN, data)
        stream.close_channel(exec_protocol.STDIN)


class Window:
    """Tells the command the size of its terminal whenever the size changes."""

    def __init__(self, stream: WSClient, size: Size) -> None:
        self._stream, self._size = stream, size
        self._told: os.terminal_size | None = None

    def update(self) -> None:
        """Tell the command the size if it has changed."""
        now = self._size()
        if now == self._told:
            return
        self._told = now
        # The command may have ended, and its terminal with it.
        with contextlib.suppress(OSError, WebSocketException):
            self._stream.write_channel(
                exec_protocol.RESIZE, json.dumps({"Width": now.columns, "Height": now.lines}).encode()
            )
