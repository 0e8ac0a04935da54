"""A command in a container: what it reads, what it prints as it comes, and how it ends."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from websocket import WebSocketException

from . import exec_protocol
from .cluster import Cluster
from .command_input import Read, Size, Window, feed
from .errors import DeadlineError, UnreachableError

if TYPE_CHECKING:
    from kubernetes.stream.ws_client import WSClient

Write = Callable[[bytes], object]
_LOOK_SECONDS = 0.5


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
    """Run a command in a container until it ends; its exit code.

    Args:
        cluster: Where the pod is.
        pod: Its name.
        container: That of the container.
        command: The program and its arguments.
        stdout: Given what it prints.
        stderr: Given what it prints as errors.
        stdin: Asked for what it is to read.
        size: Asked for the size of its terminal; without this, it has none.
        seconds: How long to wait for its end.

    Raises:
        ClientError: The API server is too old to pass input on.
        DeadlineError: It has not ended after so many seconds; it may run on.
        UnreachableError: The connection was lost before that.
    """
    stream = cluster.open_exec(pod, container, command, stdin=stdin is not None, tty=size is not None)
    deadline = time.monotonic() + seconds
    with contextlib.closing(stream):
        if stdin is not None:
            feed(stream, stdin)
        window = Window(stream, size) if size is not None else None
        is_open = True
        while is_open:
            if window is not None:
                window.update()
            left = deadline - time.monotonic()
            if left <= 0:
                raise DeadlineError(f"{command[0]} in pod {pod} did not end within {seconds:g} s")
            is_open = _update(stream, min(_LOOK_SECONDS, left))
            for channel, write in ((exec_protocol.STDOUT, stdout), (exec_protocol.STDERR, stderr)):
                if data := _take(stream, channel):
                    write(data)
        return _exit_code(_take(stream, exec_protocol.ERROR), pod)


def _update(stream: WSClient, seconds: float) -> bool:
    """Wait for more; whether there can be more after that."""
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
    """From the status that the kubelet sends when the command has ended."""
    if not said:
        raise UnreachableError(
            f"the connection to pod {pod} was lost before the command ended; it may still be running"
        )
    status = json.loads(said)
    if status["status"] == "Success":
        return 0
    for cause in (status.get("details") or {}).get("causes") or []:
        if cause.get("reason") == "ExitCode":
            return int(cause["message"])
    raise UnreachableError(f"the command could not be run in pod {pod}: {status.get('message')}")
