"""Run a command in a container: pass its input and output on, and return its exit code.

The kubernetes package defines the same channels, but importing it takes a second, which `workergroups --help` must not
wait for.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from websocket import WebSocketException

from ..errors import ClientError, DeadlineError, NotFoundError, UnreachableError
from ..times import duration
from .cluster import Cluster

if TYPE_CHECKING:
    from kubernetes.stream.ws_client import WSClient

Write = Callable[[bytes], object]
Read = Callable[[], bytes]
"""Waits for more input; returns nothing at the end."""
Size = Callable[[], os.terminal_size]

STDIN, STDOUT, STDERR, ERROR, RESIZE = range(5)
"""The channels of Kubernetes' protocol of streams into containers (`v5.channel.k8s.io`)."""
CLOSES_STDIN = "v5.channel.k8s.io"
"""The first version of the protocol that can tell a command that its input has ended."""
_LOOK_SECONDS = 0.5
_ABSENT = re.compile(r'exec: (?P<what>"[^"]*": (executable file not found in \$PATH|.*no such file or directory))')


def execute(
    cluster: Cluster,
    pod: str,
    container: str,
    command: Sequence[str],
    *,
    stdout: Write,
    stderr: Write,
    stdin: Read | None = None,
    size: Size | None = None,
    seconds: float = float("inf"),
) -> int:
    """Run a command in a container until it ends, and return its exit code.

    Args:
        cluster: The cluster of the pod.
        pod: The name of the pod.
        container: The name of the container.
        command: The program and its arguments.
        stdout: Called with each piece of the output.
        stderr: Called with each piece of the errors.
        stdin: Called for the input; without it, the command has none.
        size: Called for the size of the terminal; without it, the command has no terminal.
        seconds: How long to wait for the end of the command.

    Raises:
        ClientError: The API server is too old to pass input on.
        DeadlineError: The command did not end in time; it may still be running.
        UnreachableError: The connection was lost before the command ended.
    """
    stream = cluster.open_exec(pod, container, command, stdin=stdin is not None, tty=size is not None)
    deadline = time.monotonic() + seconds
    with contextlib.closing(stream):
        if stdin is not None:
            _feed(stream, stdin)
        window = _Window(stream, size) if size is not None else None
        is_open = True
        while is_open:
            if window is not None:
                window.update()
            left = deadline - time.monotonic()
            if left <= 0:
                raise DeadlineError(f"{command[0]} in pod {pod} did not end within {duration(seconds)}")
            is_open = _update(stream, min(_LOOK_SECONDS, left))
            for channel, write in ((STDOUT, stdout), (STDERR, stderr)):
                if data := _take(stream, channel):
                    write(data)
        return _exit_code(_take(stream, ERROR), pod)


def _feed(stream: WSClient, read: Read) -> None:
    """Pass input on to the command until the input ends.

    This runs in its own thread, since a command that waits for its output to be read does not read its input.
    """
    if stream.subprotocol != CLOSES_STDIN:
        raise ClientError("the API server cannot pass input to a command: this needs Kubernetes 1.30 or later")
    threading.Thread(target=_carry, args=(stream, read), daemon=True).start()


def _carry(stream: WSClient, read: Read) -> None:
    # The reader of the command's output notices that the command has ended.
    with contextlib.suppress(OSError, WebSocketException):
        while data := read():
            stream.write_channel(STDIN, data)
        stream.close_channel(STDIN)


class _Window:
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
            self._stream.write_channel(RESIZE, json.dumps({"Width": now.columns, "Height": now.lines}).encode())


def _update(stream: WSClient, seconds: float) -> bool:
    """Wait for more data, and return whether the stream is still open."""
    try:
        stream.update(timeout=seconds)
    except (OSError, WebSocketException):
        return False
    return bool(stream.is_open())


def _take(stream: WSClient, channel: int) -> bytes:
    with contextlib.suppress(OSError, WebSocketException):
        return bytes(stream.read_channel(channel))
    return b""


def _exit_code(said: bytes, pod: str) -> int:
    """Return the exit code from the status that the kubelet sends when the command has ended."""
    if not said:
        raise UnreachableError(
            f"the connection to pod {pod} was lost before the command ended; it may still be running"
        )
    try:
        status = json.loads(said)
        if status["status"] == "Success":
            return 0
        for cause in (status.get("details") or {}).get("causes") or []:
            if cause.get("reason") == "ExitCode":
                return int(cause["message"])
        why = status.get("message")
    except (ValueError, KeyError, TypeError, AttributeError):
        why = said.decode(errors="replace")
    if (absent := _ABSENT.search(str(why))) is not None:
        raise NotFoundError(
            f"the command could not be run in pod {pod}: {absent['what']}. Its image lacks the program; for more than "
            "one program, write sh -c '...'"
        )
    raise UnreachableError(f"the command could not be run in pod {pod}: {why}; kubectl describe pod {pod} may say more")
