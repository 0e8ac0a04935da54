"""Shards in the memory of CUDA devices, read by other processes of their node: the driver maps it into them.

This needs only the driver, and the reader need not see the other device. Memory is unmapped again soon after each read,
since mapped memory does not become free when its process ends. torch's own `reduce_tensor` is not used: it counts one
reader for each tensor that is sent, and here many read the same one.
"""

from __future__ import annotations

import ctypes
import logging
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from workergroups.lazy import torch

from .memory import Span

logger = logging.getLogger(__name__)

_HANDLE_BYTES = 64
_LAZY_PEER_ACCESS = 1
_RELAXED = 2

_LINGER_SECONDS = 1.0
"""How long memory stays mapped after a read. To map another device's takes 10 ms (512 MiB, H200), and nothing while it
is mapped: who reads more rarely than this does not notice, and memory that is freed is free this much later."""


class _Handle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_char * _HANDLE_BYTES),)


@dataclass(frozen=True)
class IpcAddress:
    """Shards that the driver maps."""

    places: tuple[tuple[bytes, int], ...]
    """Of each shard: the handle of the allocation that has it, and its first byte there."""

    @classmethod
    def of(cls, tensors: Sequence[Any]) -> IpcAddress:
        """Describe contiguous tensors on devices.

        Raises:
            OSError: The driver shares no such memory, such as that of PyTorch's expandable segments.
        """
        handles: dict[int, bytes] = {}
        places = []
        for tensor in tensors:
            if not tensor.numel():
                places.append((b"", 0))
                continue
            base = _base(tensor.data_ptr())
            if base not in handles:
                handles[base] = _handle(base)
            places.append((handles[base], tensor.data_ptr() - base))
        return cls(tuple(places))


class IpcTransfer:
    """Bytes that the devices copy."""

    def __init__(self, address: IpcAddress, spans: Sequence[Span]) -> None:
        self._device = spans[0].into.device
        self._mapped: dict[bytes, int] = {}
        self._event: Any = None
        try:
            with torch.cuda.device(self._device):
                self._copy(address, spans)
        except BaseException:
            self.close()
            raise

    def is_done(self) -> bool:
        """Return whether all have arrived."""
        return bool(self._event.query())

    def close(self) -> None:
        """Wait for the copies that have begun; the memory is unmapped later."""
        with torch.cuda.device(self._device):
            torch.cuda.current_stream().synchronize()
            context = ctypes.c_void_p()
            _call("cuCtxGetCurrent", ctypes.byref(context))
        while self._mapped:
            _unmapper().put(_Read(time.monotonic(), context, self._mapped.popitem()[1]))

    def _copy(self, address: IpcAddress, spans: Sequence[Span]) -> None:
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        for span in spans:
            handle, offset = address.places[span.shard]
            if handle not in self._mapped:
                self._mapped[handle] = _mapped(handle)
            source = ctypes.c_uint64(self._mapped[handle] + offset + span.start)
            size = ctypes.c_size_t(len(span.into))
            _call("cuMemcpyDtoDAsync_v2", ctypes.c_uint64(span.into.data_ptr()), source, size, stream)
        self._event = torch.cuda.Event()
        self._event.record()


def leave_graphs_alone() -> None:
    """Let this thread map and allocate memory while another one captures a CUDA graph, which would fail otherwise."""
    try:
        _call("cuThreadExchangeStreamCaptureMode", ctypes.byref(ctypes.c_int(_RELAXED)))
    except OSError as error:
        logger.warning("CUDA graphs may fail that are captured while tensors are read: %s", error)


def _base(pointer: int) -> int:
    base = ctypes.c_uint64()
    _call("cuMemGetAddressRange_v2", ctypes.byref(base), None, ctypes.c_uint64(pointer))
    return base.value


def _handle(base: int) -> bytes:
    handle = _Handle()
    _call("cuIpcGetMemHandle", ctypes.byref(handle), ctypes.c_uint64(base))
    return bytes(handle)


def _mapped(handle: bytes) -> int:
    pointer = ctypes.c_uint64()
    _call(
        "cuIpcOpenMemHandle_v2",
        ctypes.byref(pointer),
        _Handle.from_buffer_copy(handle),
        ctypes.c_uint(_LAZY_PEER_ACCESS),
    )
    return pointer.value


class _Read(NamedTuple):
    """Memory of another process that was read."""

    since: float
    context: ctypes.c_void_p
    """The driver's context of the device that it is mapped for."""
    pointer: int


@cache
def _unmapper() -> queue.SimpleQueue[_Read]:
    """Return where to put what must be unmapped."""
    read: queue.SimpleQueue[_Read] = queue.SimpleQueue()
    threading.Thread(target=_unmap, args=(read,), name="workergroups-unmap", daemon=True).start()
    return read


def _unmap(read: queue.SimpleQueue[_Read]) -> None:
    leave_graphs_alone()
    while True:
        since, context, pointer = read.get()
        time.sleep(max(0.0, since + _LINGER_SECONDS - time.monotonic()))
        try:
            _call("cuCtxSetCurrent", context)
            _call("cuIpcCloseMemHandle", ctypes.c_uint64(pointer))
        except OSError as error:  # others are still to be unmapped
            logger.warning("Memory of another process stays mapped: %s", error)


def _call(name: str, *arguments: Any) -> None:
    """Call a function of the driver.

    Raises:
        OSError: It returns an error, or there is no driver.
    """
    driver = _driver()
    code = getattr(driver, name)(*arguments)
    if code:
        text = ctypes.c_char_p()
        driver.cuGetErrorName(code, ctypes.byref(text))
        raise OSError(f"{name}: {(text.value or b'error').decode()} ({code})")


@cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")
