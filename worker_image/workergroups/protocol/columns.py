"""Operations on single columns of a batch: tensors of any layout, and numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from workergroups.lazy import np, torch
from workergroups.transfers.memory import as_integers

from .packed_columns import ragged_dim


def take(column: Any, index: Any) -> Any:
    """Return the rows of a column that a slice or an array of indices or booleans selects.

    Raises:
        RuntimeError: torch cannot choose rows of a tensor of this layout.
    """
    if _is_nested(column):
        rows = column.unbind()
        return _nested([rows[number] for number in _numbers(len(rows), index)], like=column)
    if getattr(column, "layout", None) == torch.sparse_coo:
        numbers = torch.from_numpy(_numbers(len(column), index)).to(column.device)
        return _coalesced(column.index_select(0, numbers), like=[column])
    return _by_bits(lambda tensors: tensors[0][index], [column])


def join(columns: Sequence[Any]) -> Any:
    """Concatenate columns.

    Raises:
        RuntimeError, ValueError: They do not fit together, or torch cannot join tensors of this layout.
    """
    first = columns[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(columns, axis=0)
    if _is_nested(first):
        return _nested([row for column in columns for row in column.unbind()], like=first)
    joined = _by_bits(torch.cat, columns)
    return _coalesced(joined, like=columns) if getattr(first, "layout", None) == torch.sparse_coo else joined


def as_numpy(index: Any) -> Any:
    """Return indices as a numpy array of 64 bits each, or booleans as one of booleans."""
    array = index.detach().cpu().numpy() if isinstance(index, torch.Tensor) else np.asarray(index)
    # torch takes an array of uint8 for booleans.
    return array.astype(np.int64) if array.dtype.kind in "iu" or not array.size else array


def nbytes(column: Any) -> int:
    """Return the memory that a column's elements take, in bytes."""
    if isinstance(column, np.ndarray):
        return int(column.nbytes)
    if not isinstance(column, torch.Tensor):
        return int(column.bytes())
    values = column.values() if _is_nested(column) and column.layout == torch.jagged else column
    return int(values.element_size() * values.numel())


def _is_nested(column: Any) -> bool:
    return bool(getattr(column, "is_nested", False))


def _numbers(rows: int, index: Any) -> Any:
    """Return the numbers of the rows that a slice or an index selects."""
    return np.arange(rows)[index if isinstance(index, slice) else as_numpy(index)]


def _coalesced(tensor: Any, like: Sequence[Any]) -> Any:
    return tensor.coalesce() if all(other.is_coalesced() for other in like) else tensor


def _by_bits(operation: Callable[[list[Any]], Any], columns: Sequence[Any]) -> Any:
    """Return an operation's result that moves elements; also of types that torch can only store, such as uint4."""
    try:
        return operation(list(columns))
    except NotImplementedError:
        dtype = columns[0].dtype
        if any(column.dtype != dtype for column in columns):
            raise
        return operation([as_integers(column) for column in columns]).view(dtype)


def _nested(rows: list[Any], *, like: Any) -> Any:
    if like.layout == torch.jagged:
        return _jagged(rows, like)
    if not rows:
        return torch.nested.nested_tensor([], dtype=like.dtype, device=like.device, layout=like.layout)
    return torch.nested.as_nested_tensor(rows, layout=like.layout)


def _jagged(rows: list[Any], like: Any) -> Any:
    """Return a jagged tensor of these rows without holes; with lengths if the other one has them."""
    ragged = ragged_dim(like)
    cat = partial(torch.cat, dim=ragged - 1)
    values = _by_bits(cat, rows) if rows else like.values().narrow(ragged - 1, 0, 0)
    lengths = torch.tensor([row.shape[ragged - 1] for row in rows], dtype=like.offsets().dtype, device=like.device)
    offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0, dtype=lengths.dtype)])
    return torch.nested.nested_tensor_from_jagged(
        values, offsets, lengths=None if like.lengths() is None else lengths, jagged_dim=ragged
    )
