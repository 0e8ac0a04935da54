"""Bytes to read, and what each way of reading them has in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from workergroups.lazy import torch


class Span(NamedTuple):
    """Bytes to read."""

    shard: int
    """The number of the shard among those that were published together."""
    start: int
    """Its first byte in the shard."""
    into: Any
    """Where to: a contiguous tensor of bytes, whose length is how many."""


class Transfer(Protocol):
    """Bytes on their way."""

    def is_done(self) -> bool:
        """Return whether all have arrived.

        Raises:
            OSError: They cannot be read.
        """

    def close(self) -> None:
        """Give up what it needed."""


INTEGERS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}
"""Names of torch's types by their size in bytes."""


def as_integers(tensor: Any) -> Any:
    """Return a view of the tensor's elements as integers of their size, which torch can copy whatever their type."""
    name = INTEGERS.get(tensor.element_size())
    return tensor if name is None else tensor.view(getattr(torch, name))


def as_bytes(tensor: Any) -> Any:
    """Return the memory of a contiguous tensor as a tensor of bytes."""
    # Of a single element, torch takes any stride for contiguous, but views only one whose stride is 1 as another type.
    return tensor.detach().as_strided((tensor.numel(),), (1,)).view(torch.uint8)


def is_plain_memory(tensor: Any) -> bool:
    """Return whether a tensor has an address on the host or on a CUDA or ROCm device, which other libraries can use."""
    return tensor.device.type in ("cpu", "cuda")


def kind_of(tensor: Any) -> str:
    """Return what NIXL calls the kind of memory of a tensor."""
    return "VRAM" if tensor.is_cuda else "DRAM"


def memory_for(layouts: Sequence[tuple[Any, int]], device: Any) -> list[Any]:
    """Return flat tensors of these types and lengths in one allocation, which is registered once."""
    starts, size = [], 0
    for dtype, count in layouts:
        starts.append(size)
        size += -(-count * dtype.itemsize // 256) * 256
    memory = torch.empty(size, dtype=torch.uint8, device=device)
    return [
        memory[start : start + count * dtype.itemsize].view(dtype)
        for start, (dtype, count) in zip(starts, layouts, strict=True)
    ]


def settle(tensors: Iterable[Any]) -> None:
    """Wait for what devices still do with tensors, on any stream."""
    for device in {tensor.device for tensor in tensors if tensor.is_cuda}:
        torch.cuda.synchronize(device)
