"""The tensors of a `DataProto`: a TensorDict, or packed as they travel between processes.

Each dense or jagged tensor is packed as the array of its bytes, which pickle (protocol 5) leaves out of band, so that
Ray copies it once into shared memory and readers map it. What arrives is read-only shared memory. Tensors are made from
it only when a program uses them, by one copy that also joins the parts of several ranks. A batch that is only passed on
is never copied into the process. Tensors of other layouts and classes travel as torch writes them to a file.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from workergroups.errors import BatchLostError
from workergroups.lazy import np, tensordict, torch
from workergroups.ray_private.references import counts_references

from . import on_device
from .buffers import BUFFERS
from .on_device import Keeper, KeptBytes
from .packed_columns import (
    PackedColumn,
    PackedJagged,
    PackedTensor,
    PackedWhole,
    here,
    is_plain,
    pack_column,
    pack_whole,
    unpack_column,
    unpack_whole,
)

logger = logging.getLogger(__name__)

_PIECE = 4 * 2**20
"""Bytes that one thread copies at a time."""
_THREADS = min(16, os.cpu_count() or 1)


class PackedBatch(NamedTuple):
    """A TensorDict of tensors with one batch dimension."""

    rows: int
    columns: Mapping[str, PackedColumn]

    def rows_between(self, start: int, stop: int) -> PackedBatch | None:
        """Return the rows from ``start`` to before ``stop``, without copying; ``None`` if a column is not dense."""
        columns = {}
        for key, column in self.columns.items():
            if not isinstance(column, PackedTensor):
                return None
            row_bytes = column.data.nbytes // max(self.rows, 1)
            columns[key] = column._replace(
                data=column.data[start * row_bytes : stop * row_bytes],
                shape=(stop - start, *column.shape[1:]),
            )
        return PackedBatch(stop - start, columns)

    def select(self, keys: Iterable[str]) -> PackedBatch:
        """Return a batch with only these columns."""
        return self._replace(columns={key: self.columns[key] for key in keys})

    @property
    def nbytes(self) -> int:
        """The bytes of all tensors."""
        return sum(int(data.nbytes) for data in self._data)

    @property
    def keepers(self) -> set[str]:
        """The actors on whose devices there are tensors."""
        return {data.kept.actor_id for data in self._data if isinstance(data, KeptBytes)}

    @property
    def _data(self) -> Iterator[Any]:
        return (c.values.data if isinstance(c, PackedJagged) else c.data for c in self.columns.values())


def pack(batch: Any, keeper: Keeper | None = None) -> PackedBatch | None:
    """Pack a TensorDict, without copying what is dense or jagged; ``None`` if a column is no tensor.

    Args:
        batch: The TensorDict.
        keeper: Takes what stays on its device.

    Raises:
        TypeError: A tensor cannot be sent.
    """
    if not all(isinstance(column, torch.Tensor) for column in batch.values()):
        return None
    packed_offsets: dict[int, PackedTensor] = {}
    columns = {key: pack_column(key, column, packed_offsets, keeper) for key, column in batch.items()}
    return PackedBatch(batch.batch_size[0], columns)


def unpack(parts: Sequence[PackedBatch], seconds: float) -> Any:
    """Return the TensorDict of all rows of the parts, which shares no memory with them; see `BatchStore.read`."""
    copies: list[_Copy] = []
    joined = {key: _join([part.columns[key] for part in parts], copies) for key in parts[0].columns}
    _carry_out(copies, seconds)
    rows = sum(part.rows for part in parts)
    offsets: dict[int, Any] = {}
    tensors = {key: unpack_column(column, offsets) for key, column in joined.items()}
    return tensordict.TensorDict(tensors, batch_size=[rows])


def joinable(parts: Sequence[PackedBatch]) -> bool:
    """Return whether ``unpack`` can join the parts: the same dense columns, alike but for the number of rows."""

    def layout(part: PackedBatch) -> dict[str, Any]:
        return {
            key: (column.dtype, column.shape[1:]) if isinstance(column, PackedTensor) else None
            for key, column in part.columns.items()
        }

    first = layout(parts[0])
    return all(layout(part) == first for part in parts) and (len(parts) == 1 or None not in first.values())


class BatchStore:
    """A TensorDict that may still be packed, in several parts."""

    def __init__(self, batch: Any = None, parts: Sequence[PackedBatch] = ()) -> None:
        self._batch = batch
        self._parts = list(parts)
        self._prepare()

    @property
    def batch(self) -> Any:
        """The TensorDict, or ``None``; unpacked when first asked for."""
        self.read(on_device.READ_SECONDS)
        return self._batch

    def read(self, seconds: float) -> None:
        """Unpack the tensors, and read those on devices, within ``seconds``.

        Raises:
            BatchLostError: A rank that keeps some has ended, or cannot be reached.
        """
        if not self._parts:
            return
        deadline = time.monotonic() + seconds
        # Two threads would both unpack, and what the first one then writes would be lost.
        if not self._reading.acquire(timeout=seconds):
            raise BatchLostError(f"another thread has not read the batch within {seconds:g} s")
        try:
            if self._parts:
                self._batch, self._parts = unpack(self._parts, max(0.0, deadline - time.monotonic())), []
        finally:
            self._reading.release()

    @property
    def is_packed(self) -> bool:
        """Whether the tensors are still packed, since they have not been used yet."""
        return bool(self._parts)

    @property
    def keepers(self) -> set[str]:
        """The actors on whose devices there are tensors that have not been read."""
        return {actor_id for part in self._parts for actor_id in part.keepers}

    @property
    def rows(self) -> int | None:
        """The number of rows; ``None`` without tensors."""
        if parts := self._parts:  # once, here and below: another thread may be unpacking them
            return sum(part.rows for part in parts)
        return None if self._batch is None else int(self._batch.batch_size[0])

    @property
    def nbytes(self) -> int | None:
        """The bytes of all tensors while they are packed; ``None`` afterwards."""
        return sum(part.nbytes for part in parts) if (parts := self._parts) else None

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
        if parts := self._parts:
            return list(parts[0].columns)
        return [] if self._batch is None else list(self._batch.keys())

    def select(self, keys: Iterable[str]) -> BatchStore:
        """Return a store with only these tensors, which must exist; packed tensors stay packed."""
        if parts := self._parts:
            return BatchStore(parts=[part.select(keys) for part in parts])
        return BatchStore(None if self._batch is None else self._batch.select(*keys))

    def union(self, other: BatchStore) -> BatchStore | None:
        """Return the tensors of both without looking at them; ``None`` where that cannot be."""
        mine, theirs = self._parts, other._parts
        alike = [part.rows for part in mine] == [part.rows for part in theirs]
        if not mine or not alike or set(self.keys) & set(other.keys):
            return None
        pairs = zip(mine, theirs, strict=True)
        return BatchStore(parts=[one._replace(columns={**one.columns, **two.columns}) for one, two in pairs])

    @staticmethod
    def join(stores: Sequence[BatchStore]) -> BatchStore | None:
        """Return the rows of all stores without looking at the tensors; ``None`` where that cannot be."""
        of_stores = [store._parts for store in stores]
        parts = [part for each in of_stores for part in each]
        return BatchStore(parts=parts) if all(of_stores) and joinable(parts) else None

    def kept_on_device(self, method: str) -> BatchStore | None:
        """Leave the tensors on their device; return a store that reads them if they are used, ``None`` if it can't be.

        Args:
            method: What returns the batch, for messages.
        """
        keeper = None if self._batch is None else Keeper.of(filter(_is_dense, self._batch.values()), method)
        packed = keeper and pack(self._batch, keeper)
        return BatchStore(parts=[packed]) if keeper and packed and keeper.finish() else None

    def __getstate__(self) -> tuple[PackedWhole | None, list[PackedBatch]]:
        if self.keepers and not counts_references():
            self.read(on_device.READ_SECONDS)  # it may be used when its rank has long ended
        if (parts := self._parts) or self._batch is None:
            return None, parts
        packed = pack(self._batch)
        return (pack_whole(self._batch), []) if packed is None else (None, [packed])

    def __setstate__(self, state: tuple[PackedWhole | None, list[PackedBatch]]) -> None:
        whole, self._parts = state
        self._batch = None if whole is None else unpack_whole(whole)
        self._prepare()

    def _prepare(self) -> None:
        self._reading = threading.RLock()
        if self.keepers:
            _KEPT[id(self)] = self


_KEPT: WeakValueDictionary[int, BatchStore] = WeakValueDictionary()
"""What this process has not read yet from the devices of actors. No set: its list is not made in one step."""


def read_before_end(actor_ids: Collection[str]) -> None:
    """Read what this process has of batches on the devices of actors that are about to be ended.

    All that fails takes at most twice `LAST_READ_SECONDS`: what takes all of its time leaves half of it to the next.
    """
    seconds = on_device.LAST_READ_SECONDS
    for store in filter(None, [reference() for reference in _KEPT.valuerefs()]):
        if store.keepers.isdisjoint(actor_ids):
            continue
        began = time.monotonic()
        try:
            store.read(seconds)
        except Exception as error:  # such as a device without memory: the actors must end all the same
            seconds = max(seconds - (time.monotonic() - began), seconds / 2)
            if not isinstance(error, BatchLostError):
                logger.warning("A batch is lost with its ranks, since it cannot be read: %r", error)


def _is_dense(column: Any) -> bool:
    return isinstance(column, torch.Tensor) and (is_plain(column) or column.layout == torch.jagged)


class _Copy(NamedTuple):
    """Bytes to copy."""

    target: Any
    source: Any


def _join(parts: Sequence[Any], copies: list[_Copy]) -> Any:
    """Return the column of all parts, in memory that gets its contents by the copies that are added here."""
    if isinstance(parts[0], PackedJagged):
        (part,) = parts
        return part._replace(values=_join([part.values], copies))
    if isinstance(parts[0], PackedWhole):
        (part,) = parts
        return part
    first: PackedTensor = parts[0]
    if any(isinstance(part.data, KeptBytes) for part in parts):
        data = _memory(sum(part.data.nbytes for part in parts), here(first.device))
    elif len(parts) == 1 and first.data.flags.writeable:
        return first
    else:
        # Received parts are shared memory: writing to them would change what other processes see.
        data = BUFFERS.take(sum(part.data.nbytes for part in parts))
    offset = 0
    for part in parts:
        copies.append(_Copy(data[offset : offset + part.data.nbytes], part.data))
        offset += part.data.nbytes
    return first._replace(data=data, shape=(sum(part.shape[0] for part in parts), *first.shape[1:]))


def _memory(size: int, device: Any) -> Any:
    """Return a tensor of bytes."""
    if device.type == "cpu":
        return torch.from_numpy(BUFFERS.take(size))
    return torch.empty(size, dtype=torch.uint8, device=device)


def _carry_out(copies: Sequence[_Copy], seconds: float) -> None:
    """Copy, by several threads where it is much: one alone mostly waits for the kernel to find and clear pages."""
    on_device.read([(copy.source, copy.target) for copy in copies if isinstance(copy.source, KeptBytes)], seconds)
    copies = [copy for copy in copies if not isinstance(copy.source, KeptBytes)]
    for copy in copies:
        if isinstance(copy.target, torch.Tensor):  # a part in host memory beside others on devices
            copy.target.copy_(torch.from_numpy(np.array(copy.source)))
    pieces = [
        (copy.target[start : start + _PIECE], copy.source[start : start + _PIECE])
        for copy in copies
        if not isinstance(copy.target, torch.Tensor)
        for start in range(0, copy.source.nbytes, _PIECE)
    ]
    if sum(len(target) for target, _ in pieces) <= _PIECE:
        for piece in pieces:
            np.copyto(*piece)
        return
    with ThreadPoolExecutor(_THREADS) as threads:
        # numpy releases the interpreter's lock while it copies.
        list(threads.map(lambda piece: np.copyto(*piece), pieces))
