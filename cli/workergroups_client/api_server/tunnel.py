"""A tunnel from a port of this machine to a port of a pod, through the API server.

The port forward of the kubernetes package ends in a traceback and leaves its sockets open when the connection to the
API server is cut. So the tunnel uses only the package's stream, and copies the bytes here.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from websocket import WebSocketException

from ..errors import ClientError
from .cluster import Cluster

if TYPE_CHECKING:
    from kubernetes.stream.ws_client import WSClient

_DATA, _ERROR = 0, 1
_PORT_NUMBER_BYTES = 2
"""Each channel begins with the number of the port."""
_AT_ONCE = 1 << 20
LOOPBACK = "127.0.0.1"


class Tunnel:
    """Listens on 127.0.0.1 until it is closed; each connection gets its own stream to the pod.

    Args:
        cluster: The cluster of the pod.
        find_pod: Called for the name of the pod, at first and whenever the pod is gone.
        port: The port of the pod.
        local_port: The port of this machine; 0 for a free one.
    """

    def __init__(self, cluster: Cluster, find_pod: Callable[[], str], port: int, local_port: int = 0) -> None:
        self._cluster, self._find_pod = cluster, find_pod
        self.remote_port = port
        self.pod: str | None = None
        self.trouble: ClientError | None = None
        """Why the last connection failed; ``None`` if it succeeded."""
        try:
            self._listener = socket.create_server((LOOPBACK, local_port))
        except OSError as error:
            raise ClientError(
                f"port {local_port} of this machine cannot be used ({error.strerror}): choose another"
            ) from error
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """The local address of the server in the pod."""
        return f"http://{LOOPBACK}:{self.port}"

    def close(self) -> None:
        """Accept no more connections."""
        # A thread that waits in accept() is not woken by close() alone.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def __enter__(self) -> Tunnel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._carry, args=(connection,), daemon=True).start()

    def _carry(self, local: socket.socket) -> None:
        with local:
            try:
                remote = self._open()
                self.trouble = None
            except ClientError as error:
                self.trouble = error
                return
            # When one side ends, the other is closed, and its user notices that.
            with contextlib.suppress(OSError, WebSocketException), contextlib.closing(remote):
                _carry_both_ways(local, remote)

    def _open(self) -> WSClient:
        if self.pod is not None:
            with contextlib.suppress(ClientError):  # the pod may have been replaced
                return self._cluster.open_port(self.pod, self.remote_port)
        self.pod = self._find_pod()
        return self._cluster.open_port(self.pod, self.remote_port)


def _carry_both_ways(local: socket.socket, remote: WSClient) -> None:
    skip = _PORT_NUMBER_BYTES
    while remote.is_open():
        if _wait(local, remote):
            data = local.recv(_AT_ONCE)
            if not data:
                return
            remote.write_channel(_DATA, data)
        refused = len(remote.peek_channel(_ERROR)) > _PORT_NUMBER_BYTES
        # This must be last: each read of a channel also receives data of the others, which no event reports again.
        received = remote.read_channel(_DATA)
        local.sendall(received[skip:])
        skip = max(0, skip - len(received))
        if refused:
            return


def _wait(local: socket.socket, remote: WSClient) -> bool:
    """Wait until one of the sides has data, and return whether the local one has."""
    stream = remote.sock.sock
    # Data that was decrypted already does not make the socket readable.
    at_once = isinstance(stream, ssl.SSLSocket) and stream.pending()
    readable, _, _ = select.select([local, stream], [], [], 0 if at_once else None)
    return local in readable
