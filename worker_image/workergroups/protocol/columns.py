"""Operations on single columns of a batch: tensors, jagged nested tensors among them, and numpy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workergroups.lazy import np, torch


def take(column: Any, index: Any) -> Any:
    """Return the rows of a column that a slice or an array of indices or booleans selects."""
    if not _is_nested(column):
        return column[index]
    rows = column.unbind()
    numbers = np.arange(len(rows))[index if isinstance(index, slice) else as_numpy(index)]
    return _nested([rows[number] for number in numbers], like=column)


def join(columns: Sequence[Any]) -> Any:
    """Concatenate columns."""
    first = columns[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(columns, axis=0)
    if _is_nested(first):
        return _nested([row for column in columns for row in column.unbind()], like=first)
    return torch.cat(list(columns), dim=0)


def repeat(column: Any, times: int, *, interleave: bool) -> Any:
    """Return each row ``times`` times in turn, or the whole column ``times`` times."""
    rows = column.shape[0]
    order = np.repeat(np.arange(rows), times) if interleave else np.tile(np.arange(rows), times)
    return take(column, as_index(column, order))


def repeat_rows(column: Any, times: Sequence[int]) -> Any:
    """Repeat row i ``times[i]`` times."""
    return take(column, as_index(column, np.repeat(np.arange(column.shape[0]), times)))


def as_index(column: Any, order: Any) -> Any:
    """Return a numpy array of indices in the form that indexes the column."""
    return order if isinstance(column, np.ndarray) else torch.from_numpy(order)


def as_numpy(index: Any) -> Any:
    """Return indices or booleans as a numpy array."""
    if isinstance(index, torch.Tensor):
        return index.detach().cpu().numpy()
    array = np.asarray(index)
    return array if array.size else array.astype(np.int64)


def nbytes(column: Any) -> int:
    """Return the memory that a column's elements take, in bytes."""
    if isinstance(column, np.ndarray):
        return int(column.nbytes)
    values = column.values() if _is_nested(column) and column.layout == torch.jagged else column
    return int(values.element_size() * values.numel())


def _is_nested(column: Any) -> bool:
    return bool(getattr(column, "is_nested", False))


def _nested(rows: list[Any], *, like: Any) -> Any:
    if not rows:
        return torch.nested.nested_tensor([], dtype=like.dtype, device=like.device, layout=like.layout)
    return torch.nested.as_nested_tensor(rows, layout=like.layout)
