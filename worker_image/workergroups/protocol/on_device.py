"""Columns of a batch that stay on the device of the rank that returned it, until somebody uses them.

The rank copies them to other memory of the device, so that it may go on with its tensors. What travels is how to read
that memory, and a reference to an object of the rank. Ray counts the references, in whichever process they are, and the
rank frees the memory when there is none.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import ray

from workergroups.errors import BatchLostError
from workergroups.lazy import torch
from workergroups.ray_private.references import watches_references, when_unreferenced
from workergroups.transfers.fetching import Source, UnreadableError, fetch, node, process_name
from workergroups.transfers.memory import Span, as_integers, memory_for
from workergroups.transfers.transports import Lease, say_once

_SMALLEST = 4 * 2**20
"""Bytes below which a batch is sent through host memory: that takes less time."""
_LARGEST_SHARE = 1 / 16
"""How much of a device's memory a process keeps for batches; more go through host memory, as if there was no device."""
READ_SECONDS, LAST_READ_SECONDS = 300.0, 10.0
"""How long a process tries to read a batch: when it uses it, and before it ends the rank that has it."""


@dataclass(eq=False)
class Kept:
    """Memory of a rank, as other processes see it."""

    actor_id: str
    """The actor of the rank."""
    method: str
    """What returned the batch."""
    source: Any = None
    reference: Any = None
    """The rank keeps the memory for as long as there is a process with this."""


@dataclass(frozen=True)
class KeptBytes:
    """The bytes of one column; a slice of them is others of the same memory."""

    kept: Kept
    column: int
    """Its number among those that the rank keeps of the batch."""
    start: int
    nbytes: int

    def __getitem__(self, chosen: slice) -> KeptBytes:
        start, stop, _ = chosen.indices(self.nbytes)
        return KeptBytes(self.kept, self.column, self.start + start, max(stop - start, 0))


class Keeper:
    """Collects the columns of one batch that stay on their device."""

    def __init__(self, actor_id: str, method: str, device: Any) -> None:
        self._kept = Kept(actor_id, method)
        self._device = device
        self._tensors: list[Any] = []

    @classmethod
    def of(cls, columns: Iterable[Any], method: str) -> Keeper | None:
        """Return what collects columns like these; ``None`` if they should go through host memory."""
        on_device = [column for column in columns if is_kept(column)]
        nbytes = sum(_nbytes(column) for column in on_device)
        devices = {column.device for column in on_device}
        actor_id = _actor_id() if nbytes >= _SMALLEST and len(devices) == 1 else None
        if actor_id is None:
            return None
        if not watches_references():
            say_once(f"Batches go through host memory: Ray {ray.__version__} does not tell when they are unused")
            return None
        device = devices.pop()
        return cls(actor_id, method, device) if _has_room(device, nbytes) else None

    def keep(self, tensor: Any) -> KeptBytes | None:
        """Plan to keep a dense tensor; ``None`` if it is in host memory."""
        if not is_kept(tensor):
            return None
        self._tensors.append(as_integers(tensor.detach().resolve_conj().resolve_neg()))
        return KeptBytes(self._kept, len(self._tensors) - 1, 0, tensor.nbytes)

    def finish(self) -> bool:
        """Copy what was planned; return whether the device had memory for it."""
        try:
            memory = memory_for([(tensor.dtype, tensor.numel()) for tensor in self._tensors], self._device)
        except torch.OutOfMemoryError:
            say_once("Batches go through host memory while the device has no memory for them")
            return False
        for tensor, copy in zip(self._tensors, memory, strict=True):
            copy.view(tensor.shape).copy_(tensor)
        if self._device.type == "cuda":
            torch.cuda.current_stream(self._device).synchronize()  # other processes do not know this one's streams
        lease = Lease(memory, by_nixl=False)
        name, _ = process_name()
        self._kept.source = Source(name, node(), lease.address)
        self._kept.reference = ray.put(None)
        _LEASES[self._kept.reference.binary()] = lease
        when_unreferenced(self._kept.reference, _LEASES.__delitem__)
        return True


_LEASES: dict[bytes, Lease] = {}
"""What this process keeps, by the id of the object that others refer to."""


def read(wanted: Iterable[tuple[KeptBytes, Any]], seconds: float) -> None:
    """Read columns into tensors of bytes.

    Raises:
        BatchLostError: A rank that keeps them has ended, or cannot be reached within ``seconds``.
    """
    spans: dict[str, list[Span]] = {}
    kept: dict[str, Kept] = {}
    for data, into in wanted:
        if not data.nbytes:
            continue
        lease = data.kept.source.address.lease
        kept[lease] = data.kept
        spans.setdefault(lease, []).append(Span(data.column, data.start, into))
    try:
        fetch(((kept[lease].source, each) for lease, each in spans.items()), time.monotonic() + seconds)
    except UnreadableError as error:
        methods = " or ".join(sorted({repr(each.method) for each in kept.values()}))
        raise BatchLostError(
            f"the batch that {methods} returned is on the ranks' devices, and {error}. Call the method again. What "
            "must outlive its rank is returned in host memory: `return batch.to('cpu')`"
        ) from error


def is_kept(tensor: Any) -> bool:
    """Return whether a dense tensor is on a device from which others read."""
    return bool(tensor.is_cuda)


def _nbytes(column: Any) -> int:
    return int((column.values() if column.is_nested else column).nbytes)


def _has_room(device: Any, nbytes: int) -> bool:
    if device.type != "cuda":
        return True
    used = sum(tensor.nbytes for lease in list(_LEASES.values()) for tensor in lease.tensors)
    _, total = torch.cuda.mem_get_info(device)
    return bool(used + nbytes <= total * _LARGEST_SHARE)


def _actor_id() -> str | None:
    return ray.get_runtime_context().get_actor_id() if ray.is_initialized() else None
