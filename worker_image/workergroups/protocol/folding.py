"""Fold the batch dimension into two, and back."""

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
