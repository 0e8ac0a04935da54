"""Shards by Ray's object store: they are copied to host memory when they are published, and Ray moves them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayError

from workergroups.errors import WeightsError
from workergroups.lazy import np, torch

from .memory import Span, as_bytes


@dataclass(frozen=True)
class StoredAddress:
    """Shards in Ray's object store."""

    refs: tuple[Any, ...]
    """A reference to the bytes of each shard."""

    @classmethod
    def of(cls, tensors: Sequence[Any]) -> StoredAddress:
        """Store the bytes of contiguous tensors, for as long as somebody has this.

        Raises:
            WeightsError: This process is not connected to Ray.
        """
        if not ray.is_initialized():
            raise WeightsError(
                "weights can be published from a process that Ray has not started only by NIXL: install nixl"
            )
        return cls(tuple(ray.put(as_bytes(tensor).cpu().numpy()) for tensor in tensors))


class StoredTransfer:
    """Bytes that are in the object store."""

    def __init__(self, address: StoredAddress, spans: Sequence[Span]) -> None:
        if not ray.is_initialized():
            raise OSError("it is in Ray's object store, and this process is not connected to Ray: install nixl")
        self._left: dict[Any, list[Span]] = {}
        for span in spans:
            self._left.setdefault(address.refs[span.shard], []).append(span)

    def is_done(self) -> bool:
        """Copy what has arrived; return whether that is all."""
        ready, _ = ray.wait(list(self._left), num_returns=len(self._left), timeout=0)
        for ref in ready:
            try:
                stored = ray.get(ref)
            except RayError as error:
                raise OSError(str(error)) from error
            for span in self._left.pop(ref):
                part = np.array(stored[span.start : span.start + len(span.into)])  # Ray's own memory is read-only.
                span.into.copy_(torch.from_numpy(part))
        return not self._left

    def close(self) -> None:
        """Wait for nothing more."""
        self._left.clear()
