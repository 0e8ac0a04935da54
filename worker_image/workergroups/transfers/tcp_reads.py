"""Shards that their process sends over TCP, through host memory: what is left where no other way is possible.

A thread of the process answers, also while the process computes. Who knows a lease may read it: its name is random, and
goes only to the processes that the program passes it to.
"""

from __future__ import annotations

import logging
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import ray

from workergroups.lazy import torch
from workergroups.ports import bind_any_port

from . import tls
from .cuda_ipc import leave_graphs_alone
from .memory import Span, as_bytes

logger = logging.getLogger(__name__)

_REQUEST = struct.Struct("!32sI")
"""The lease, and the number of spans."""
_SPAN = struct.Struct("!IQQ")
"""The shard, its first byte, and the number of bytes."""
_MOST_SPANS = 2**16
"""Spans of a request; a reader of more makes several."""
_FOUND, _GONE = b"\1", b"\0"
_CONNECT_SECONDS = 10.0
_SILENT_SECONDS = 60.0
"""Seconds without a byte after which the other process is taken for lost."""
_BUSY_SECONDS = 0.1
_CHUNK = 4 * 2**20
"""Bytes of a device that are in host memory at a time."""


@dataclass(frozen=True)
class TcpAddress:
    """Where a process answers."""

    host: str
    port: int


class TcpServer:
    """The thread that sends this process's shards to those that ask for them.

    Args:
        tensors_of: Returns the tensors of a lease; ``None`` if it has been released.
    """

    def __init__(self, tensors_of: Callable[[str], Sequence[Any] | None]) -> None:
        self._tensors_of = tensors_of
        self._listener = bind_any_port()
        self._listener.listen(128)
        self.address = TcpAddress(ray.util.get_node_ip_address().strip("[]"), self._listener.getsockname()[1])
        threading.Thread(target=self._accept, name="workergroups-transfers", daemon=True).start()

    def close(self) -> None:
        """Accept no more readers here, in a process that was forked from the one with the threads."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
                answer = threading.Thread(
                    target=self._answer, args=(connection,), name="workergroups-transfer", daemon=True
                )
                answer.start()
            except (OSError, RuntimeError):  # no more files, or threads, at the moment
                time.sleep(_BUSY_SECONDS)

    def _answer(self, connection: socket.socket) -> None:
        """Send what one reader asks for. One that goes away, or asks for what there is not, gets nothing more."""
        connection.settimeout(_SILENT_SECONDS)
        with connection, suppress(OSError, struct.error, UnicodeDecodeError, IndexError):
            try:
                self._send(tls.accepted(connection))
            except RuntimeError:  # torch's: there is no memory, or the tensor's was given back
                logger.exception("tensors that another process asked for cannot be sent")

    def _send(self, connection: socket.socket) -> None:
        with connection:
            while True:
                lease, count = _REQUEST.unpack(_received(connection, _REQUEST.size))
                tensors = self._tensors_of(lease.decode("ascii"))
                connection.sendall(_GONE if tensors is None else _FOUND)
                if tensors is None or count > _MOST_SPANS:
                    return
                for shard, start, size in _SPAN.iter_unpack(_received(connection, count * _SPAN.size)):
                    for chunk in _on_host(as_bytes(tensors[shard])[start : start + size]):
                        connection.sendall(chunk)


class TcpTransfer:
    """Bytes that another process sends."""

    def __init__(
        self, address: TcpAddress, lease: str, spans: Sequence[Span], seconds: float = _CONNECT_SECONDS
    ) -> None:
        self._spans = spans
        self._lease = lease
        self._error: Exception | None = None
        connection = socket.create_connection((address.host, address.port), min(seconds, _CONNECT_SECONDS))
        self._connection = tls.connected(connection, address.host)
        self._connection.settimeout(_SILENT_SECONDS)
        self._thread = threading.Thread(target=self._run, name="workergroups-transfer", daemon=True)
        self._thread.start()

    def is_done(self) -> bool:
        """Return whether all have arrived."""
        if self._thread.is_alive():
            return False
        if self._error is not None:
            raise self._error
        return True

    def close(self) -> None:
        """Read no more."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._connection.close()
        self._error = None  # its traceback has this transfer, and so the memory that was read into

    def _run(self) -> None:
        try:
            self._read()
        except Exception as error:  # it is raised where somebody waits for it
            self._error = error

    def _read(self) -> None:
        for first in range(0, len(self._spans), _MOST_SPANS):
            self._request(self._spans[first : first + _MOST_SPANS])

    def _request(self, spans: Sequence[Span]) -> None:
        connection = self._connection
        connection.sendall(_REQUEST.pack(self._lease.encode("ascii"), len(spans)))
        if _received(connection, 1) == _GONE:
            raise OSError("its process has it no more")
        connection.sendall(b"".join(_SPAN.pack(shard, start, len(into)) for shard, start, into in spans))
        for span in spans:
            if span.into.device.type == "cpu":
                _receive(connection, memoryview(span.into.numpy()))
            else:
                _receive_on_device(connection, span.into)


def _on_host(memory: Any) -> Iterator[memoryview]:
    """Yield bytes of this process's memory, in pieces."""
    buffer = None if memory.device.type == "cpu" else _host_buffer(memory)
    with _of_device(memory):
        for piece in memory.split(_CHUNK):
            yield memoryview((piece if buffer is None else buffer[: len(piece)].copy_(piece)).numpy())


def _receive_on_device(connection: socket.socket, into: Any) -> None:
    buffer = _host_buffer(into)
    # torch knows the inference mode by thread, and only in it writes to tensors that a caller has made in it.
    with _of_device(into), torch.inference_mode():
        for piece in into.split(_CHUNK):
            _receive(connection, memoryview(buffer[: len(piece)].numpy()))
            piece.copy_(buffer[: len(piece)])


def _host_buffer(memory: Any) -> Any:
    if memory.is_cuda:
        leave_graphs_alone()
    return torch.empty(min(len(memory), _CHUNK), dtype=torch.uint8, pin_memory=memory.is_cuda)


def _of_device(memory: Any) -> Any:
    """Return a context on a stream of its own: what the process computes is not waited for.

    torch has 32 streams of each priority, which it gives out in turn. CUDA graphs are captured on one of the default
    priority; copies on that would make the capture fail.
    """
    return torch.cuda.stream(torch.cuda.Stream(memory.device, priority=-1)) if memory.is_cuda else nullcontext()


def _received(connection: socket.socket, size: int) -> bytes:
    data = bytearray(size)
    _receive(connection, memoryview(data))
    return bytes(data)


def _receive(connection: socket.socket, into: memoryview) -> None:
    while into:
        size = connection.recv_into(into)
        if not size:
            raise OSError("its process has ended, or has closed the connection: then its log says why")
        into = into[size:]
