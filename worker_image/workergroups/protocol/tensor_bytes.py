"""One dense tensor as plain values: the name of its type, its shape, and its bytes."""

from __future__ import annotations

from typing import Any

from workergroups.lazy import torch

Encoded = tuple[str, tuple[int, ...], Any]
"""dtype name, shape, and the bytes as a one-dimensional numpy array."""


def encode(tensor: Any) -> Encoded:
    """Return the values of a tensor; the bytes share its memory if they can."""
    host = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    # Of a single element, torch takes any stride for contiguous, but views only one whose stride is 1 as another type.
    data = host.as_strided((host.numel(),), (1,)).view(torch.uint8).numpy()
    return str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), data


def decode(dtype: str, shape: tuple[int, ...], data: Any) -> Any:
    """Return the tensor of these values; it shares the memory of the bytes, which must be writable."""
    kind = getattr(torch, dtype)
    if not data.nbytes:  # torch does not view nothing as another type
        return torch.empty(shape, dtype=kind)
    return torch.from_numpy(data).view(kind).view(shape)
