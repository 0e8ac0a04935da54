"""Tensors as plain tuples of names, shapes and bytes, for formats without tensors."""

from __future__ import annotations

from typing import Any

from workergroups.errors import InvalidTypeError
from workergroups.lazy import np, tensordict, torch

from .packed_columns import Encoded, PackedWhole, decode, encode, is_plain, pack_whole, ragged_dim, unpack_whole


def serialize_single_tensor(obj: Any) -> Encoded:
    """Encode a dense tensor.

    Raises:
        TypeError: It is of another layout, quantized, or of a subclass.
    """
    if not is_plain(obj):
        raise InvalidTypeError(f"only dense tensors are encoded alone, not a {obj.dtype} of layout {obj.layout}")
    return encode(obj)


def deserialize_single_tensor(arr: Encoded) -> Any:
    """Return the tensor that was encoded, in its own memory."""
    dtype, shape, data = arr
    return decode(dtype, shape, np.array(memoryview(data), dtype=np.uint8))


def serialize_tensordict(batch: Any) -> tuple[tuple[int, ...], str | None, dict[str, Any]]:
    """Encode a TensorDict: batch size, device, and each column.

    A jagged tensor is ``"jagged"`` and its rows; if these do not tell all of it, the dimension in which they differ,
    the values, the offsets, and the lengths or ``None``. A tensor of another layout is ``"whole"`` and its bytes.
    """
    columns = {key: _encode_column(column) for key, column in batch.items()}
    return tuple(batch.batch_size), None if batch.device is None else str(batch.device), columns


def _encode_column(column: Any) -> Any:
    if is_plain(column):
        return encode(column)
    if column.layout != torch.jagged:
        return "whole", pack_whole(column).data
    dim, lengths = ragged_dim(column), column.lengths()
    if len(column) and dim == 1 and lengths is None:
        return "jagged", [encode(row) for row in column.unbind()]
    parts = encode(column.values()), encode(column.offsets()), None if lengths is None else encode(lengths)
    return "jagged", dim, *parts


def deserialize_tensordict(arr: tuple[tuple[int, ...], str | None, dict[str, Any]]) -> Any:
    """Return the TensorDict that was encoded."""
    batch_size, device, columns = arr
    return tensordict.TensorDict(
        {key: _decode_column(column) for key, column in columns.items()}, batch_size=batch_size, device=device
    )


def _decode_column(column: Any) -> Any:
    match column:
        case "whole", data:
            return unpack_whole(PackedWhole(data))
        case layout, rows:
            return torch.nested.as_nested_tensor(
                [deserialize_single_tensor(row) for row in rows], layout=getattr(torch, layout)
            )
        case "jagged", dim, values, offsets, lengths:
            return torch.nested.nested_tensor_from_jagged(
                deserialize_single_tensor(values),
                deserialize_single_tensor(offsets),
                lengths=None if lengths is None else deserialize_single_tensor(lengths),
                jagged_dim=dim,
            )
    return deserialize_single_tensor(column)
