"""Tensors as plain tuples of names, shapes and bytes, for formats without tensors."""

from __future__ import annotations

from typing import Any

from workergroups.lazy import np, tensordict, torch

from .packing import Encoded, decode, encode


def serialize_single_tensor(obj: Any) -> Encoded:
    """Encode a dense tensor."""
    return encode(obj)


def deserialize_single_tensor(arr: Encoded) -> Any:
    """Return the tensor that was encoded, in its own memory."""
    dtype, shape, data = arr
    return decode(dtype, shape, np.array(memoryview(data), dtype=np.uint8))


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
    """Return the TensorDict that was encoded."""
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
