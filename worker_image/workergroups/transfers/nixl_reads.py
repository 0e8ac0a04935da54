"""Shards that NIXL reads from the memory of their process: over NVLink or PCIe, by RDMA or TCP, whatever UCX finds.

Tried with nixl 1.5.1.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import uuid
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .memory import Span, kind_of

logger = logging.getLogger(__name__)

_PROGRESS_SECONDS = 0.005
"""A reader over TCP waits for this often; measured: 64 MiB arrive as fast as with a tenth of it."""

_MAX_PEERS = 16384
"""Other processes that are remembered, more than one read needs: those of earlier incarnations have ended."""


@dataclass(frozen=True)
class NixlAddress:
    """Shards that NIXL reads from the memory of their process."""

    agent: str
    metadata: bytes
    """NIXL's own description of agent and memory."""
    memory: tuple[tuple[int, int], ...]
    """The pointer and the device's index of each shard."""
    kind: str
    """The kind of memory of all of them."""


@dataclass
class _Peer:
    """Another process as NIXL knows it here."""

    metadata: set[bytes] = field(default_factory=set)
    """Which descriptions of its memory it has been told: that of what was published last has all that still is."""
    transfers: int = 0
    """How many are on their way, which would fail if it was forgotten."""


class Nixl:
    """This process as an agent of NIXL, which counts who needs which memory registered."""

    def __init__(self) -> None:
        from nixl._api import nixl_agent, nixl_agent_config, nixl_thread_sync_t

        if "NIXL_LOG_LEVEL" not in os.environ:
            logging.getLogger("nixl").setLevel(logging.WARNING)
        # NIXL's own progress thread uses a whole core of each process, even if nobody reads. Ours is `_progress`.
        config = nixl_agent_config(
            enable_prog_thread=False, backends=["UCX"], sync_mode=nixl_thread_sync_t.NIXL_THREAD_SYNC_STRICT
        )
        # Not when this is imported: forks of the process that imported it must differ.
        self.agent = nixl_agent(uuid.uuid4().hex, config)
        self._lock = threading.RLock()
        self._registered: dict[tuple[int, int], tuple[Any, int]] = {}
        self._peers: dict[str, _Peer] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._progress, name="workergroups-nixl", daemon=True)
        self._thread.start()
        atexit.register(self._stop)  # a thread that is in NIXL when the interpreter ends would abort the process

    def register(self, storage: Any, kind: str) -> tuple[int, int]:
        """Register a storage, unless it is; return its key."""
        key = (storage.data_ptr(), storage.nbytes())
        with self._lock:
            described, uses = self._registered.get(key, (None, 0))
            if described is None:
                described = self.agent.register_memory([(*key, storage.device.index or 0, "")], mem_type=kind)
            self._registered[key] = described, uses + 1
        return key

    def unregister(self, keys: list[tuple[int, int]], tensors: list[Any]) -> None:
        """Undo a `register` for each key, and forget the tensors of that memory."""
        with self._lock:
            for key in keys:
                described, uses = self._registered.pop(key)
                if uses > 1:
                    self._registered[key] = described, uses - 1
                else:
                    self.agent.deregister_memory(described)
        tensors.clear()

    def request(self, address: NixlAddress, spans: Sequence[Span]) -> Any:
        """Return NIXL's handle of a transfer into memory that is registered here; it ends with `forget`."""
        own = [(span.into.data_ptr(), len(span.into), max(span.into.get_device(), 0)) for span in spans]
        memory = address.memory
        theirs = [(memory[at][0] + start, len(into), memory[at][1]) for at, start, into in spans]
        into = self.agent.get_xfer_descs(own, mem_type=kind_of(spans[0].into))
        source = self.agent.get_xfer_descs(theirs, mem_type=address.kind)
        with self._lock:
            peer = self._meet(address)
            handle = self.agent.initialize_xfer("READ", into, source, address.agent)
            peer.transfers += 1
        return handle

    def forget(self, handle: Any, address: NixlAddress) -> None:
        """Give up a transfer."""
        with self._lock:
            self._peers[address.agent].transfers -= 1
            self.agent.release_xfer_handle(handle)

    def _meet(self, address: NixlAddress) -> _Peer:
        """Know the other process and its present memory, and forget the one that has not been read for longest."""
        peer = self._peers.pop(address.agent, None) or _Peer()
        self._peers[address.agent] = peer
        if address.agent != self.agent.name and address.metadata not in peer.metadata:
            if peer.metadata and not peer.transfers:  # what it had before may be registered again
                self.agent.remove_remote_agent(address.agent)
                peer.metadata.clear()
            self.agent.add_remote_agent(address.metadata)
            peer.metadata.add(address.metadata)
        if len(self._peers) > _MAX_PEERS:
            oldest = next((name for name, each in self._peers.items() if each.metadata and not each.transfers), None)
            if oldest not in (None, address.agent):
                del self._peers[oldest]
                self.agent.remove_remote_agent(oldest)
        return peer

    def _progress(self) -> None:
        """Answer readers that begin, or whose way needs this process: with TCP, and at first with all others."""
        while not self._stopping.wait(_PROGRESS_SECONDS):
            self.agent.get_new_notifs()

    def _stop(self) -> None:
        self._stopping.set()
        self._thread.join()


class NixlLease:
    """Memory of contiguous tensors that NIXL may use until it is released, or until nobody refers to this."""

    def __init__(self, nixl: Nixl, tensors: Sequence[Any]) -> None:
        self._nixl = nixl
        self._tensors = list(tensors)  # Memory that is registered must not be freed.
        keys: list[tuple[int, int]] = []
        self._release = weakref.finalize(self, nixl.unregister, keys, self._tensors)
        self._release.atexit = False
        for tensor in self._tensors:
            if tensor.numel():
                keys.append(nixl.register(tensor.untyped_storage(), kind_of(tensor)))

    @property
    def address(self) -> NixlAddress:
        """How other processes reach the tensors."""
        memory = tuple((tensor.data_ptr(), max(tensor.get_device(), 0)) for tensor in self._tensors)
        kind = kind_of(self._tensors[0]) if self._tensors else "DRAM"
        return NixlAddress(self._nixl.agent.name, self._nixl.agent.get_agent_metadata(), memory, kind)

    def release(self) -> None:
        """Unregister the memory."""
        self._release()


_ABANDONED: list[NixlLease] = []


class NixlTransfer:
    """Bytes that NIXL reads."""

    def __init__(self, nixl: Nixl, address: NixlAddress, spans: Sequence[Span]) -> None:
        self._nixl = nixl
        self._address = address
        self._memory = NixlLease(
            nixl, list({span.into.untyped_storage().data_ptr(): span.into for span in spans}.values())
        )
        self._handle = None
        try:
            self._handle = nixl.request(address, spans)
            self._state = nixl.agent.transfer(self._handle)
        except BaseException:
            self.close()
            raise

    def is_done(self) -> bool:
        """Return whether all have arrived."""
        if self._state == "PROC":
            self._state = self._nixl.agent.check_xfer_state(self._handle)
        if self._state == "ERR":
            raise OSError("NIXL reports an error")
        return bool(self._state == "DONE")

    def close(self) -> None:
        """Give up the handle and the memory."""
        try:
            if self._handle is not None:
                self._nixl.forget(self._handle, self._address)
        except Exception as error:
            # NIXL may still write to the memory, so it must stay.
            _ABANDONED.append(self._memory)
            logger.warning("NIXL cannot cancel a transfer, whose memory stays registered: %r", error)
        else:
            self._memory.release()
