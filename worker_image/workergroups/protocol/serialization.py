"""Tensors as plain tuples of names, shapes and bytes, for formats that know no tensors."""

from __future__ import annotations

from typing import Any

from workergroups.lazy import tensordict, torch

from .columns import as_bytes

Encoded = tuple[str, tuple[int, ...], Any]
"""dtype name, shape, and the bytes as a one-dimensional numpy array."""


def serialize_single_tensor(obj: Any) -> Encoded:
    """Encode a dense tensor."""
    return str(obj.dtype).removeprefix("torch."), tuple(obj.shape), as_bytes(obj)


def deserialize_single_tensor(arr: Encoded) -> Any:
    """The tensor that was encoded, in memory of its own."""
    dtype, shape, data = arr
    raw = bytearray(data)
    if not raw:  # torch makes no tensor of an empty buffer
        return torch.empty(shape, dtype=getattr(torch, dtype))
    return torch.frombuffer(raw, dtype=torch.uint8).view(getattr(torch, dtype)).view(shape)


def serialize_tensordict(batch: Any) -> tuple[tuple[int, ...], str | None, dict[str, Any]]:
    """Encode a TensorDict: batch size, device, and each column; a nested tensor as its layout and its rows."""
    columns: dict[str, Any] = {}
    for key, column in batch.items():
        if column.is_nested:
            layout = str(column.layout).removeprefix("torch.")
            columns[key] = layout, [serialize_single_tensor(row) for row in column.unbind()]
        else:
            columns[key] = serialize_single_tensor(column)
    return tuple(batch.batch_size), None if batch.device is None else str(batch.device), columns


def deserialize_tensordict(arr: tuple[tuple[int, ...], str | None, dict[str, Any]]) -> Any:
    """The TensorDict that was encoded."""
    batch_size, device, columns = arr
    return tensordict.TensorDict(
        {key: _decode_column(column) for key, column in columns.items()}, batch_size=batch_size, device=device
    )


def _decode_column(column: Any) -> Any:
    if len(column) == 3:
        return deserialize_single_tensor(column)
    layout, rows = column
    return torch.nested.as_nested_tensor(
        [deserialize_single_tensor(row) for row in rows], layout=getattr(torch, layout)
    )
