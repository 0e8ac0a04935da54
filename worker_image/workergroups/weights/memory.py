"""Bytes to read, and what each way of reading them has in common."""

from __future__ import annotations

from collections.abc import Iterable
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


def as_bytes(tensor: Any) -> Any:
    """Return the memory of a contiguous tensor as a tensor of bytes."""
    return tensor.detach().reshape(-1).view(torch.uint8)


def is_plain_memory(tensor: Any) -> bool:
    """Return whether a tensor has an address on the host or on a CUDA or ROCm device, which other libraries can use."""
    return tensor.device.type in ("cpu", "cuda")


def settle(tensors: Iterable[Any]) -> None:
    """Wait for what devices still do with tensors, on any stream."""
    for device in {tensor.device for tensor in tensors if tensor.is_cuda}:
        torch.cuda.synchronize(device)
