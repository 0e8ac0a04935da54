"""Fold the batch dimension into two, and back; pad batches so that they divide."""

from __future__ import annotations

from workergroups.errors import InvalidValueError
from workergroups.lazy import np

from .data_proto import DataProto


def fold_batch_dim(data: DataProto, new_batch_size: int) -> DataProto:
    """Columns of shape ``[rows, ...]`` as ``[new_batch_size, rows // new_batch_size, ...]``.

    Raises:
        ValueError: ``new_batch_size`` does not divide the rows.
    """
    rows = len(data)
    if rows % new_batch_size:
        raise InvalidValueError(f"{rows} rows do not fold into {new_batch_size}")
    batch = data.batch.view(new_batch_size, -1)
    batch.auto_batch_size_(batch_dims=1)
    others = {
        key: np.reshape(column, (new_batch_size, -1, *column.shape[1:]))
        for key, column in data.non_tensor_batch.items()
    }
    return type(data)(batch, others, dict(data.meta_info))


def unfold_batch_dim(data: DataProto, batch_dims: int = 2) -> DataProto:
    """Columns whose first ``batch_dims`` dimensions are joined to one."""
    batch = data.batch.clone(recurse=False)
    batch.auto_batch_size_(batch_dims=batch_dims)
    batch = batch.view(-1)
    others = {
        key: np.reshape(column, (batch.batch_size[0], *column.shape[batch_dims:]))
        for key, column in data.non_tensor_batch.items()
    }
    return type(data)(batch, others, dict(data.meta_info))


def pad_dataproto_to_divisor(data: DataProto, size_divisor: int) -> tuple[DataProto, int]:
    """Return a batch whose length ``size_divisor`` divides, padded with its own first rows; and how many were added.

    An empty batch is returned as it is.
    """
    rows = len(data)
    missing = -rows % size_divisor
    if missing == 0:
        return data, 0
    parts = [data]
    while missing > 0:
        parts.append(data[: min(missing, rows)])
        missing -= rows
    return DataProto.concat(parts), -rows % size_divisor


def unpad_dataproto(data: DataProto, pad_size: int) -> DataProto:
    """Return the batch without its last ``pad_size`` rows.

    Raises:
        ValueError: The batch has fewer rows, or ``pad_size`` is negative.
    """
    if not 0 <= pad_size <= len(data):
        raise InvalidValueError(f"{pad_size} rows of padding cannot be cut off {len(data)} rows")
    return data[:-pad_size] if pad_size else data
