"""The tensors of a `DataProto`: a TensorDict, or packed tensors from other processes that nobody has used yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .packing import PackedBatch, joinable, pack, unpack


class BatchStore:
    """A TensorDict that may still be packed, in several parts."""

    def __init__(self, batch: Any = None, parts: Sequence[PackedBatch] = ()) -> None:
        self._batch = batch
        self._parts = list(parts)

    @property
    def batch(self) -> Any:
        """The TensorDict, or ``None``; unpacked when first asked for."""
        if self._parts:
            self._batch, self._parts = unpack(self._parts), []
        return self._batch

    @property
    def is_packed(self) -> bool:
        """Whether the tensors are still packed, since nobody has used them yet."""
        return bool(self._parts)

    @property
    def rows(self) -> int | None:
        """The number of rows; ``None`` without tensors."""
        if self._parts:
            return sum(part.rows for part in self._parts)
        return None if self._batch is None else int(self._batch.batch_size[0])

    @property
    def nbytes(self) -> int | None:
        """The bytes of all tensors while they are packed; ``None`` afterwards."""
        return sum(part.nbytes for part in self._parts) if self._parts else None

    def between(self, start: int, stop: int) -> BatchStore | None:
        """Return the rows from ``start`` to before ``stop`` without unpacking; ``None`` if that is impossible."""
        chosen: list[PackedBatch] = []
        offset = 0
        for part in self._parts:
            first, last = max(start - offset, 0), min(stop - offset, part.rows)
            if first < last or (start == stop and not chosen):
                rows = part.rows_between(first, max(first, last))
                if rows is None:
                    return None
                chosen.append(rows)
            offset += part.rows
        return BatchStore(parts=chosen) if chosen else None

    @property
    def keys(self) -> list[str]:
        """The names of the tensors."""
        if self._parts:
            return list(self._parts[0].columns)
        return [] if self._batch is None else list(self._batch.keys())

    def select(self, keys: Iterable[str]) -> BatchStore:
        """Return a store with only these tensors, which must exist; packed tensors stay packed."""
        if self._parts:
            return BatchStore(parts=[part.select(keys) for part in self._parts])
        return BatchStore(None if self._batch is None else self._batch.select(*keys))

    def union(self, other: BatchStore) -> BatchStore | None:
        """Return the tensors of both without looking at them; ``None`` where that cannot be."""
        alike = [part.rows for part in self._parts] == [part.rows for part in other._parts]
        if not self._parts or not alike or set(self.keys) & set(other.keys):
            return None
        pairs = zip(self._parts, other._parts, strict=True)
        return BatchStore(parts=[one._replace(columns={**one.columns, **two.columns}) for one, two in pairs])

    @staticmethod
    def join(stores: Sequence[BatchStore]) -> BatchStore | None:
        """Return the rows of all stores without looking at the tensors; ``None`` where that cannot be."""
        parts = [part for store in stores for part in store._parts]
        if all(store.is_packed for store in stores) and joinable(parts):
            return BatchStore(parts=parts)
        return None

    def __getstate__(self) -> tuple[Any, list[PackedBatch]]:
        if self._parts:
            return None, self._parts
        packed = None if self._batch is None else pack(self._batch)
        return (self._batch, []) if packed is None else (None, [packed])

    def __setstate__(self, state: tuple[Any, list[PackedBatch]]) -> None:
        self._batch, self._parts = state
