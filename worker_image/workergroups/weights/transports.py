"""How bytes get from a shard of one process into memory of another: the first of these ways that both have.

1. Within a process, a copy.
2. Within a node, from device to device, by CUDA's mapping of memory (`cuda_ipc`).
3. By NIXL, if it is installed (`nixl_reads`): between nodes, and from host memory.
4. By Ray's object store (`object_store`), through host memory; not if all devices of the cluster are on one node.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from weakref import WeakValueDictionary

import ray

from .cuda_ipc import IpcAddress, IpcTransfer
from .memory import Span, Transfer, as_bytes, is_plain_memory
from .nixl_reads import Nixl, NixlAddress, NixlLease, NixlTransfer
from .object_store import StoredAddress, StoredTransfer

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Address:
    """Shards that other processes read. ``None`` is a way that there is not."""

    lease: str
    """Names them in their own process."""
    ipc: IpcAddress | None
    nixl: NixlAddress | None
    stored: StoredAddress | None


class Lease:
    """Contiguous tensors on one kind of device that others may read until this is released, or nobody refers to it."""

    def __init__(self, tensors: Sequence[Any]) -> None:
        self.tensors = list(tensors)
        self._nixl = _nixl_lease(tensors)
        ipc = _ipc(tensors)
        is_enough = self._nixl is not None or (ipc is not None and _reaches_all())
        self.address = Address(
            uuid.uuid4().hex,
            ipc,
            None if self._nixl is None else self._nixl.address,
            None if is_enough else StoredAddress.of(tensors),
        )
        _LEASES[self.address.lease] = self

    def release(self) -> None:
        """Let nobody read them."""
        _LEASES.pop(self.address.lease, None)
        if self._nixl is not None:
            self._nixl.release()
        self.tensors.clear()


_LEASES: WeakValueDictionary[str, Lease] = WeakValueDictionary()
"""What this process lets others read."""


class OwnTransfer:
    """Bytes that this process has itself."""

    def __init__(self, lease: Lease, spans: Sequence[Span]) -> None:
        for span in spans:
            span.into.copy_(as_bytes(lease.tensors[span.shard])[span.start : span.start + len(span.into)])

    def is_done(self) -> bool:
        """Return true: who uses the memory uses it on the same stream."""
        return True

    def close(self) -> None:
        """There is nothing to give up."""


def read(address: Address, spans: Sequence[Span], *, same_node: bool) -> Transfer:
    """Begin to read.

    Raises:
        OSError: There is no way.
    """
    own = _LEASES.get(address.lease)
    if own is not None:
        return OwnTransfer(own, spans)
    if same_node and address.ipc is not None and spans[0].into.is_cuda:
        try:
            return IpcTransfer(address.ipc, spans)
        except OSError as error:
            _say_once(f"Weights of this node's other processes are not read by CUDA IPC: {error}")
    if address.stored is not None:
        return StoredTransfer(address.stored, spans)
    if address.nixl is None:
        raise OSError("it can be read by devices of its own node only, since NIXL is not installed there: install nixl")
    nixl = _nixl()
    if nixl is None:
        raise OSError("it was published by NIXL, which this process cannot use: install it in both images, or in none")
    return NixlTransfer(nixl, address.nixl, spans)


def _nixl_lease(tensors: Sequence[Any]) -> NixlLease | None:
    nixl = _nixl() if all(is_plain_memory(tensor) for tensor in tensors) else None
    if nixl is None:
        return None
    try:
        return NixlLease(nixl, tensors)
    except Exception as error:  # NIXL has its own classes, which may be missing
        _say_once(f"Weights are copied to host memory for other processes, since NIXL cannot register them: {error!r}")
        return None


def _reaches_all() -> bool:
    """Return whether all ranks with devices are on this node, so that nobody needs a copy in host memory."""
    return (
        not ray.is_initialized()
        or len([node for node in ray.nodes() if node["Alive"] and node["Resources"].get("GPU")]) == 1
    )


def _ipc(tensors: Sequence[Any]) -> IpcAddress | None:
    if not tensors or not tensors[0].is_cuda:
        return None
    try:
        return IpcAddress.of(tensors)
    except OSError as error:
        _say_once(f"Other processes of this node do not read these weights by CUDA IPC: {error}")
        return None


@cache
def _nixl() -> Nixl | None:
    """Return this process as an agent of NIXL; ``None`` if there is none."""
    try:
        return Nixl()
    except Exception as error:
        _say_once(
            f"Weights are copied to host memory for other nodes, since NIXL cannot be used: {error}. Install nixl to "
            "send them from device to device"
        )
        return None


@cache
def _say_once(text: str) -> None:
    logger.warning("%s", text)
