"""How bytes get from a shard of one process into memory of another: the first of these ways that both have.

1. Within a process, a copy.
2. Within a node, from device to device, by CUDA's mapping of memory (`cuda_ipc`).
3. By NIXL, if both have it (`nixl_reads`): between devices of several nodes, and between host memories.
4. Over TCP, through host memory (`tcp_reads`).
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from weakref import WeakValueDictionary

from workergroups.lazy import torch

from . import tls
from .cuda_ipc import IpcAddress, IpcTransfer
from .memory import Span, Transfer, as_bytes, is_plain_memory, kind_of
from .nixl_reads import Nixl, NixlAddress, NixlLease, NixlTransfer
from .tcp_reads import TcpAddress, TcpServer, TcpTransfer

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Address:
    """Shards that other processes read. ``None`` is a way that there is not."""

    lease: str
    """Names them in their own process."""
    ipc: IpcAddress | None
    nixl: NixlAddress | None
    tcp: TcpAddress


class Lease:
    """Contiguous tensors on one kind of device that others may read until this is released, or nobody refers to it.

    Args:
        tensors: The tensors.
        by_nixl: Whether NIXL may read them. Each time that other memory is registered, its readers connect again, and
            UCX leaves a socket open (seen with nixl 1.5.1). So this is for what is published again and again.
    """

    def __init__(self, tensors: Sequence[Any], *, by_nixl: bool) -> None:
        self.tensors = list(tensors)
        self._nixl = _nixl_lease(tensors) if by_nixl else None
        nixl = None if self._nixl is None else self._nixl.address
        self.address = Address(uuid.uuid4().hex, _ipc(tensors), nixl, _server().address)
        _LEASES[self.address.lease] = self

    def release(self) -> None:
        """Let nobody read them."""
        _LEASES.pop(self.address.lease, None)
        if self._nixl is not None:
            self._nixl.release()
        self.tensors.clear()


_LEASES: WeakValueDictionary[str, Lease] = WeakValueDictionary()
"""What this process lets others read."""


_is_forked = False
"""Whether this process was forked from one that let others read."""


class OwnTransfer:
    """Bytes that this process has itself."""

    def __init__(self, lease: Lease, spans: Sequence[Span]) -> None:
        with torch.inference_mode():  # what was made in it is written to only in it
            for span in spans:
                span.into.copy_(as_bytes(lease.tensors[span.shard])[span.start : span.start + len(span.into)])
        if spans[0].into.is_cuda:  # the lease's memory belongs to another stream, and may be released now
            torch.cuda.current_stream(spans[0].into.device).synchronize()

    def is_done(self) -> bool:
        """Return true: the copies are waited for when they are made."""
        return True

    def close(self) -> None:
        """There is nothing to give up."""


def read(address: Address, spans: Sequence[Span], *, same_node: bool, seconds: float) -> Transfer:
    """Begin to read, and wait at most ``seconds`` for the connection that this needs.

    Raises:
        OSError: There is no way.
    """
    own = _own(address)
    if own is not None:
        return OwnTransfer(own, spans)
    if same_node and address.ipc is not None and spans[0].into.is_cuda:
        try:
            return IpcTransfer(address.ipc, spans)
        except OSError as error:
            say_once(f"Tensors of this node's other processes are not read by CUDA IPC: {error}")
    # NIXL reads a device into host memory over TCP as well, and much slower.
    if address.nixl is not None and address.nixl.kind == kind_of(spans[0].into) and (nixl := _nixl()) is not None:
        return NixlTransfer(nixl, address.nixl, spans)
    if spans[0].into.is_cuda:
        say_once(f"Tensors of other nodes are read over TCP, through host memory: {_why_no_nixl(address)}")
    return TcpTransfer(address.tcp, address.lease, spans, seconds)


@cache
def _server() -> TcpServer:
    server = TcpServer(_tensors_of)
    os.register_at_fork(after_in_child=partial(_begin_anew, server))
    return server


def _begin_anew(server: TcpServer) -> None:
    """Forget, in a forked process, what only threads of its parent can answer for; UCX does not survive a fork."""
    global _is_forked
    _is_forked = True
    server.close()
    _server.cache_clear()
    _nixl.cache_clear()
    _LEASES.clear()


def _why_no_nixl(address: Address) -> str:
    if tls.is_used():
        return "NIXL does not encrypt what it sends, and Ray uses TLS"
    if address.nixl is None:
        return "they are no weights, or NIXL is not installed there"
    return "NIXL is not installed here"


def _own(address: Address) -> Lease | None:
    return _LEASES.get(address.lease)


def _tensors_of(lease: str) -> list[Any] | None:
    known = _LEASES.get(lease)
    return None if known is None else list(known.tensors)


def _nixl_lease(tensors: Sequence[Any]) -> NixlLease | None:
    nixl = _nixl() if all(is_plain_memory(tensor) for tensor in tensors) else None
    if nixl is None:
        return None
    try:
        return NixlLease(nixl, tensors)
    except Exception as error:  # NIXL has its own classes, which may be missing
        say_once(f"NIXL cannot register these tensors, so other nodes read them over TCP: {error!r}")
        return None


def _ipc(tensors: Sequence[Any]) -> IpcAddress | None:
    if not tensors or not tensors[0].is_cuda:
        return None
    try:
        return IpcAddress.of(tensors)
    except OSError as error:
        say_once(f"Other processes of this node do not read these tensors by CUDA IPC: {error}")
        return None


@cache
def _nixl() -> Nixl | None:
    """Return this process as an agent of NIXL; ``None`` if there is none, or if it must not send plain text."""
    if tls.is_used() or _is_forked:
        return None
    try:
        return Nixl()
    except Exception as error:
        logger.info("NIXL cannot be used: %s", error)
        return None


@cache
def say_once(text: str) -> None:
    """Warn of a slower way, once in each process."""
    logger.warning("%s", text)
