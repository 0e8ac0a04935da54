"""`DataProto` itself."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workergroups.errors import InvalidTypeError, InvalidValueError, UnknownKeyError
from workergroups.lazy import np, tensordict, torch

from . import columns
from .config import DataProtoConfig
from .meta_info import merge_meta_info
from .packing import BatchStore
from .union import union, union_numpy_dict, union_tensor_dict

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing since Python 3.11


@dataclass
class DataProtoItem:
    """One row of a `DataProto`."""

    batch: Any = None
    non_tensor_batch: dict[str, Any] = field(default_factory=dict)
    meta_info: dict[str, Any] = field(default_factory=dict)


class DataProto:
    """A batch: columns with one row per sample, and facts about all of them.

    Args:
        batch: A TensorDict with one batch dimension, or ``None``.
        non_tensor_batch: numpy arrays, whose first dimension is that batch dimension.
        meta_info: Anything else; the same for every row.

    Raises:
        ValueError: The columns differ in length, or ``batch`` has not exactly one batch dimension.
        TypeError: A value of ``non_tensor_batch`` is no numpy array.
    """

    def __init__(
        self,
        batch: Any = None,
        non_tensor_batch: dict[str, Any] | None = None,
        meta_info: dict[str, Any] | None = None,
    ) -> None:
        self._store = BatchStore(batch)
        self.non_tensor_batch = {} if non_tensor_batch is None else non_tensor_batch
        self.meta_info = {} if meta_info is None else meta_info
        self.check_consistency()

    # -- making one, and taking it apart -----------------------------------------------------------------------------

    @classmethod
    def from_single_dict(
        cls, data: Mapping[str, Any], meta_info: dict[str, Any] | None = None, auto_padding: bool = False
    ) -> Self:
        """Return a batch of a dictionary of tensors and numpy arrays.

        Raises:
            TypeError: A value is neither.
        """
        tensors = {key: value for key, value in data.items() if isinstance(value, torch.Tensor)}
        others = {key: value for key, value in data.items() if isinstance(value, np.ndarray)}
        for key, value in data.items():
            if key not in tensors and key not in others:
                raise InvalidTypeError(
                    f"column {key!r} must be a tensor or a numpy array, not a {type(value).__name__}"
                )
        return cls.from_dict(tensors, others, meta_info, auto_padding=auto_padding)

    @classmethod
    def from_dict(
        cls,
        tensors: Mapping[str, Any] | None = None,
        non_tensors: Mapping[str, Any] | None = None,
        meta_info: dict[str, Any] | None = None,
        num_batch_dims: int = 1,
        auto_padding: bool = False,
    ) -> Self:
        """Return a batch of a dictionary of tensors and one of other columns, which become numpy arrays of objects.

        Args:
            tensors: Tensors of shape ``[rows, ...]``.
            non_tensors: numpy arrays or sequences of ``rows`` elements.
            meta_info: Facts about all rows.
            num_batch_dims: How many first dimensions all tensors share; 1.
            auto_padding: Whether this batch is padded where it does not divide over ranks.

        Raises:
            ValueError: The columns differ in length.
            TypeError: A column is neither an array nor a sequence.
        """
        lengths = {key: _batch_size(value, num_batch_dims) for key, value in (tensors or {}).items()}
        if len(set(lengths.values())) > 1:
            raise InvalidValueError(f"all tensors must have the same first dimension, not {lengths}")
        batch = None
        if tensors:
            batch = tensordict.TensorDict(dict(tensors), batch_size=next(iter(lengths.values())))
        others = {
            key: value if isinstance(value, np.ndarray) else _object_array(key, value)
            for key, value in (non_tensors or {}).items()
        }
        meta = dict(meta_info or {})
        if auto_padding:
            meta[DataProtoConfig.auto_padding_key] = True
        return cls(batch, others, meta)

    @classmethod
    def from_tensordict(
        cls, tensor_dict: Any = None, meta_info: dict[str, Any] | None = None, num_batch_dims: int = 1
    ) -> Self:
        """Return a batch of a TensorDict: its tensors, its stacks of other values as arrays, the rest as meta_info."""
        tensors, others, meta = {}, {}, dict(meta_info or {})
        for key, value in tensor_dict.items():
            if isinstance(value, tensordict.NonTensorStack):
                others[key] = _object_array(key, [element.data for element in value])
            elif isinstance(value, torch.Tensor | tensordict.TensorDictBase):
                tensors[key] = value
            else:
                meta[key] = tensor_dict.get(key).data if hasattr(tensor_dict.get(key), "data") else value
        return cls.from_dict(tensors, others, meta, num_batch_dims)

    def to_tensordict(self) -> Any:
        """Return one TensorDict with all columns; ``meta_info`` becomes its single values.

        Raises:
            ValueError: A name is used twice.
        """
        self.check_consistency()
        names = [*(self.batch.keys() if self.batch is not None else ()), *self.non_tensor_batch, *self.meta_info]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise InvalidValueError(
                f"{', '.join(map(repr, twice))} would be in the TensorDict twice; rename or drop one"
            )
        out = tensordict.TensorDict(dict(self.batch.items()) if self.batch is not None else {}, batch_size=[len(self)])
        for key, column in self.non_tensor_batch.items():
            out[key] = tensordict.NonTensorStack.from_list([tensordict.NonTensorData(row) for row in column])
        for key, value in self.meta_info.items():
            out.set_non_tensor(key, value)
        return out

    def save_to_disk(self, filepath: str | Path) -> None:
        """Write the batch to a file."""
        with open(filepath, "wb") as file:
            pickle.dump(self, file, protocol=5)

    @staticmethod
    def load_from_disk(filepath: str | Path) -> DataProto:
        """Return the batch that ``save_to_disk`` wrote. The file must be trusted: it can run code."""
        with open(filepath, "rb") as file:
            data: DataProto = pickle.load(file)
        return data

    def __getstate__(self) -> tuple[Any, ...]:
        return self._store, self.non_tensor_batch, self.meta_info

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._store, self.non_tensor_batch, self.meta_info = state

    def kept_on_device(self, method: str) -> Self:
        """Return the batch with its tensors left on their device; itself, if they are not on one, or are small.

        They are read by the process that uses them first, from device to device where it has one.

        Args:
            method: What returns the batch, for messages.
        """
        store = self._store.kept_on_device(method)
        return self if store is None else self._of(store, self.non_tensor_batch, self.meta_info)

    # -- looking at it -------------------------------------------------------------------------------------------------

    @property
    def batch(self) -> Any:
        """The tensors: a TensorDict, or ``None``. Tensors that came from another process are copied in on first use."""
        return self._store.batch

    @batch.setter
    def batch(self, batch: Any) -> None:
        self._store = BatchStore(batch)

    def __len__(self) -> int:
        rows = self._store.rows
        if rows is None and self.non_tensor_batch:
            rows = len(next(iter(self.non_tensor_batch.values())))
        return rows or 0

    @property
    def _has_columns(self) -> bool:
        return self._store.rows is not None or bool(self.non_tensor_batch)

    @property
    def nbytes(self) -> int:
        """The memory of all columns' elements, in bytes."""
        tensors = self._store.nbytes
        if tensors is None:
            tensors = 0 if self.batch is None else sum(columns.nbytes(column) for column in self.batch.values())
        return tensors + sum(columns.nbytes(column) for column in self.non_tensor_batch.values())

    def print_size(self, prefix: str = "") -> None:
        """Print the size of the tensors and of the other columns, in GiB."""
        others = sum(columns.nbytes(column) for column in self.non_tensor_batch.values())
        gib = 1024**3
        text = f"Size of tensordict: {(self.nbytes - others) / gib} GB, size of non_tensor_batch: {others / gib} GB"
        print(f"{prefix}, {text}" if prefix else text)

    def check_consistency(self) -> None:
        """Check that all columns have the same length.

        Raises:
            ValueError: They are not, or ``batch`` has not exactly one batch dimension.
            TypeError: A value of ``non_tensor_batch`` is no numpy array.
        """
        if not self._store.is_packed and self.batch is not None and len(self.batch.batch_size) != 1:
            raise InvalidValueError(
                f"batch must have one batch dimension, not batch_size {tuple(self.batch.batch_size)}"
            )
        for key, column in self.non_tensor_batch.items():
            if not isinstance(column, np.ndarray):
                raise InvalidTypeError(
                    f"non_tensor_batch[{key!r}] must be a numpy array, not a {type(column).__name__}"
                )
            if len(column) != len(self):
                raise InvalidValueError(
                    f"non_tensor_batch[{key!r}] has {len(column)} rows, but the batch has {len(self)}"
                )

    # -- choosing columns ----------------------------------------------------------------------------------------------

    def select(
        self,
        batch_keys: Sequence[str] | None = None,
        non_tensor_batch_keys: Sequence[str] | None = None,
        meta_info_keys: Sequence[str] | None = None,
        deepcopy: bool = False,
    ) -> Self:
        """Return the batch with some columns only; ``None`` means all of a kind.

        Raises:
            KeyError: A tensor of that name is not there.
        """
        self.check_consistency()
        store = self._store
        if batch_keys is not None:
            _check_keys("batch", batch_keys, store.keys)
            store = store.select(batch_keys)
        others = _chosen(self.non_tensor_batch, non_tensor_batch_keys)
        meta = _chosen(self.meta_info, meta_info_keys)
        if deepcopy:
            others, meta = copy.deepcopy(others), copy.deepcopy(meta)
        return self._of(store, others, meta)

    def pop(
        self,
        batch_keys: Sequence[str] | None = None,
        non_tensor_batch_keys: Sequence[str] | None = None,
        meta_info_keys: Sequence[str] | None = None,
    ) -> DataProto:
        """Take columns out of this batch and return them as another.

        Raises:
            KeyError: A key is not there, or is named twice; nothing was taken then.
        """
        keys, other_keys, meta_keys = batch_keys or (), non_tensor_batch_keys or (), meta_info_keys or ()
        _check_keys("batch", keys, self._store.keys)
        _check_keys("non_tensor_batch", other_keys, self.non_tensor_batch)
        _check_keys("meta_info", meta_keys, self.meta_info)
        taken = self._store.select(keys) if keys else BatchStore()
        self._store = self._store.select([key for key in self._store.keys if key not in keys])
        others = {key: self.non_tensor_batch.pop(key) for key in other_keys}
        return DataProto()._of(taken, others, {key: self.meta_info.pop(key) for key in meta_keys})

    def rename(self, old_keys: str | list[str], new_keys: str | list[str]) -> Self:
        """Give tensors other names, in place.

        Raises:
            ValueError: There are not as many new names as old ones, or two tensors would have one name.
            KeyError: A tensor of an old name is not there.
        """
        old = [old_keys] if isinstance(old_keys, str) else list(old_keys)
        new = [new_keys] if isinstance(new_keys, str) else list(new_keys)
        if len(old) != len(new):
            raise InvalidValueError(f"there must be a new name for each old one, not {len(new)} for {len(old)}")
        _check_keys("batch", old, self._store.keys)
        renamed = [dict(zip(old, new, strict=True)).get(key, key) for key in self._store.keys]
        if twice := sorted({key for key in renamed if renamed.count(key) > 1}):
            raise InvalidValueError(f"two tensors would be called {twice[0]!r}; rename or drop the other one")
        columns_of = dict(self.batch.items())
        for key in old:
            del self.batch[key]
        for old_key, new_key in zip(old, new, strict=True):
            self.batch[new_key] = columns_of[old_key]
        return self

    def union(self, other: DataProto) -> Self:
        """Add another batch's columns and facts to this one, in place.

        Raises:
            ValueError: The batches differ in length, or in the value of a key that both have.
        """
        self.check_consistency()
        other.check_consistency()
        others = union_numpy_dict(dict(self.non_tensor_batch), other.non_tensor_batch)
        meta = union(dict(self.meta_info), other.meta_info, "meta_info key")
        mine, theirs = self._store, other._store
        if mine.rows is None or theirs.rows is None:
            if self._has_columns and other._has_columns and len(self) != len(other):
                raise InvalidValueError(f"a union needs equal lengths, not {len(self)} and {len(other)}")
            self._store = theirs if mine.rows is None else mine
        else:
            self._store = mine.union(theirs) or BatchStore(union_tensor_dict(self.batch, other.batch))
        self.non_tensor_batch.update(others)
        self.meta_info.update(meta)
        return self

    def to(self, device: Any) -> Self:
        """Move the tensors to a device, in place."""
        if self.batch is not None:
            self.batch = self.batch.to(device)
        return self

    # -- choosing rows -------------------------------------------------------------------------------------------------

    def __getitem__(self, item: Any) -> Any:
        """Return one row as a `DataProtoItem` for an integer, else a batch of the rows that ``item`` selects."""
        if isinstance(item, slice):
            return self.slice(item.start, item.stop, item.step)
        if isinstance(item, int | np.integer):
            self.check_consistency()
            row = None if self.batch is None else self._row(item)
            others = {key: column[item] for key, column in self.non_tensor_batch.items()}
            return DataProtoItem(row, others, self.meta_info)
        return self.select_idxs(item)

    def slice(self, start: int | None = None, end: int | None = None, step: int | None = None) -> Self:
        """Return the rows of a Python slice."""
        self.check_consistency()
        chosen = slice(start, end, step)
        others = {key: column[chosen] for key, column in self.non_tensor_batch.items()}
        first, last, stride = chosen.indices(len(self))
        if stride == 1 and (store := self._store.between(first, max(first, last))) is not None:
            return self._of(store, others)
        return self._with_rows(chosen, others)

    def select_idxs(self, idxs: Any) -> Self:
        """Return the rows at these indices, or where these booleans are true: a list, numpy array or tensor."""
        self.check_consistency()
        chosen = columns.as_numpy(idxs)
        return self._with_rows(chosen, {key: column[chosen] for key, column in self.non_tensor_batch.items()})

    def reorder(self, indices: Any) -> None:
        """Reorder the rows, in place."""
        ordered = self.select_idxs(indices)
        self._store, self.non_tensor_batch = ordered._store, ordered.non_tensor_batch

    def make_iterator(
        self,
        mini_batch_size: int,
        epochs: int,
        seed: int | None = None,
        dataloader_kwargs: dict[str, Any] | None = None,
    ) -> Iterator[Self]:
        """Mini-batches of the rows, ``epochs`` times over; the same seed gives the same order.

        Args:
            mini_batch_size: Rows per mini-batch; must divide the batch.
            epochs: How often each row comes.
            seed: Of the order, if ``dataloader_kwargs`` asks for one (``{"shuffle": True}``).
            dataloader_kwargs: Arguments for torch's DataLoader.

        Raises:
            ValueError: ``mini_batch_size`` does not divide the number of rows.
        """
        if len(self) % mini_batch_size:
            raise InvalidValueError(f"mini_batch_size {mini_batch_size} does not divide {len(self)} rows")
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        loader = torch.utils.data.DataLoader(
            range(len(self)),
            batch_size=mini_batch_size,
            collate_fn=self.select_idxs,
            generator=generator,
            **(dataloader_kwargs or {}),
        )
        return (batch for _ in range(epochs) for batch in loader)

    # -- splitting and joining -----------------------------------------------------------------------------------------

    def chunk(self, chunks: int) -> list[Self]:
        """``chunks`` batches of equal length, each with all of ``meta_info``.

        Where padding is on, the last ones may be shorter.

        Raises:
            ValueError: ``chunks`` is not positive, or does not divide the number of rows and padding is off.
        """
        rows = len(self)
        if chunks < 1:
            raise InvalidValueError(f"a batch has at least one chunk, not {chunks}")
        if rows % chunks and not self.is_padding_enabled():
            raise InvalidValueError(f"{rows} rows do not divide into {chunks} chunks of equal length")
        size = -(-rows // chunks)
        return [self.slice(min(i * size, rows), min((i + 1) * size, rows)) for i in range(chunks)]

    def split(self, split_size: int) -> list[Self]:
        """Split into batches of ``split_size`` rows; the last one may be shorter.

        Raises:
            ValueError: ``split_size`` is not positive.
        """
        if split_size < 1:
            raise InvalidValueError(f"split_size must be positive, not {split_size}")
        return [self.slice(start, start + split_size) for start in range(0, len(self), split_size)]

    @staticmethod
    def concat(data: Sequence[DataProto]) -> DataProto:
        """Return the rows of all batches, one below the other.

        ``meta_info`` is merged; under ``metrics``, the batches' dictionaries (or lists of them) become one dictionary
        of lists, in the order of the batches.

        Raises:
            ValueError: The batches have different columns, or different values of a key of ``meta_info``.
        """
        if not data:
            raise InvalidValueError("there is nothing to concatenate; give at least one batch")
        for part in data:
            part.check_consistency()
        first = data[0]
        _check_alike("tensor", [part._store.keys for part in data])
        _check_alike("column", [part.non_tensor_batch for part in data])
        others = {
            key: _of_column(key, columns.join, [part.non_tensor_batch[key] for part in data])
            for key in first.non_tensor_batch
        }
        meta = merge_meta_info([part.meta_info for part in data])
        if all(part._store.rows is None for part in data):
            return first._of(BatchStore(), others, meta)
        store = BatchStore.join([part._store for part in data])
        if store is not None:
            return first._of(store, others, meta)
        tensors = {key: _of_column(key, columns.join, [part.batch[key] for part in data]) for key in first._store.keys}
        rows = sum(len(part) for part in data)
        return type(first)(tensordict.TensorDict(tensors, batch_size=[rows]), others, meta)

    def repeat(self, repeat_times: int = 2, interleave: bool = True) -> Self:
        """Return each row ``repeat_times`` times in turn, or, without ``interleave``, all rows that many times over."""
        order = np.arange(len(self))
        return self.select_idxs(np.repeat(order, repeat_times) if interleave else np.tile(order, repeat_times))

    def sample_level_repeat(self, repeat_times: Any) -> Self:
        """Repeat row i ``repeat_times[i]`` times: a list, tuple, 1-dimensional numpy array or tensor, one per row.

        Raises:
            ValueError: There is not one number for each row.
        """
        times = columns.as_numpy(repeat_times)
        if times.shape != (len(self),):
            raise InvalidValueError(f"repeat_times needs a number for each of the {len(self)} rows: {repeat_times}")
        return self.select_idxs(np.repeat(np.arange(len(self)), times))

    def unfold_column_chunks(self, n_split: int, split_keys: Sequence[str] | None = None) -> Self:
        """Split columns of shape ``[rows, k * n_split, ...]`` into ``n_split`` rows each: ``[rows * n_split, k, ...]``.

        A column of sequences of ``k * n_split`` elements becomes one of two dimensions.
        Columns that are not among ``split_keys`` have each row repeated ``n_split`` times.

        Raises:
            ValueError: ``n_split`` does not divide the elements of a column's rows.
        """
        keys = set(split_keys or ())
        repeated = self.repeat(n_split)

        def unfolded(key: str, column: Any, otherwise: Any) -> Any:
            if key not in keys:
                return otherwise
            if column.ndim == 1 and isinstance(column, np.ndarray):  # of sequences
                column = np.array([list(row) for row in column], dtype=object)
            if column.ndim == 1 or not isinstance(column.shape[1], int) or column.shape[1] % n_split:
                raise InvalidValueError(f"the rows of column {key!r} do not divide into {n_split} each")
            return column.reshape(column.shape[0] * n_split, column.shape[1] // n_split, *column.shape[2:])

        batch = None
        if self.batch is not None:
            batch = tensordict.TensorDict(
                {key: unfolded(key, column, repeated.batch[key]) for key, column in self.batch.items()},
                batch_size=[len(repeated)],
            )
        others = {
            key: unfolded(key, column, repeated.non_tensor_batch[key]) for key, column in self.non_tensor_batch.items()
        }
        return type(self)(batch, others, dict(self.meta_info))

    # -- padding -------------------------------------------------------------------------------------------------------

    def is_padding_enabled(self) -> bool:
        """Return whether this batch is padded where it does not divide over ranks."""
        return bool(self.meta_info.get(DataProtoConfig.auto_padding_key)) or DataProtoConfig.auto_padding

    def padding(self, padding_size: int, padding_candidate: str = "last") -> None:
        """Append ``padding_size`` copies of the last row, or of the ``"first"``, in place."""
        padded = self.padded(padding_size, padding_candidate)
        self._store, self.non_tensor_batch = padded._store, padded.non_tensor_batch

    def padded(self, padding_size: int, padding_candidate: str = "last") -> Self:
        """Return a copy with ``padding_size`` copies of the last row appended, or of the ``"first"``."""
        rows = len(self)
        row = 0 if padding_candidate == "first" else rows - 1
        index = np.concatenate([np.arange(rows), np.full(padding_size, row, dtype=np.int64)])
        added = self._store.between(row, row + 1) if rows else None
        store = added and BatchStore.join([self._store, *[added] * padding_size])
        if not store:
            return self.select_idxs(index)
        self.check_consistency()
        return self._of(store, {key: column[index] for key, column in self.non_tensor_batch.items()})

    def without_padding(self, rows: int, padded_rows: int) -> Self:
        """Return the first ``rows`` rows if the result has ``padded_rows`` rows, like its input; else all of it."""
        return self.slice(0, rows) if len(self) == padded_rows else self

    # ------------------------------------------------------------------------------------------------------------------

    def _with_rows(self, index: Any, others: dict[str, Any]) -> Self:
        if self.batch is None:
            return type(self)(None, others, dict(self.meta_info))
        chosen = index if isinstance(index, slice) else torch.from_numpy(index)
        tensors = {key: _of_column(key, columns.take, column, chosen) for key, column in self.batch.items()}
        rows = len(range(len(self))[index]) if isinstance(index, slice) else _count(index)
        return type(self)(tensordict.TensorDict(tensors, batch_size=[rows]), others, dict(self.meta_info))

    def _row(self, number: int) -> Any:
        tensors = {key: _of_column(key, operator.getitem, column, number) for key, column in self.batch.items()}
        return tensordict.TensorDict(tensors, batch_size=[])

    def _of(self, store: BatchStore, others: dict[str, Any], meta: dict[str, Any] | None = None) -> Self:
        new = type(self)(None, None, dict(self.meta_info) if meta is None else meta)
        new._store, new.non_tensor_batch = store, others
        return new


def _object_array(key: str, values: Any) -> Any:
    """Return a one-dimensional array of objects, also of sequences."""
    if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__getitem__"):
        raise InvalidTypeError(f"column {key!r} must be an array or a sequence of rows, not a {type(values).__name__}")
    array = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        array[row] = value
    return array


def _batch_size(tensor: Any, dims: int) -> tuple[int, ...]:
    # A strided nested tensor has no shape, but a number of rows.
    is_shapeless = isinstance(tensor, torch.Tensor) and tensor.is_nested and tensor.layout == torch.strided
    return (tensor.size(0),) if is_shapeless else tuple(tensor.shape[:dims])


def _count(index: Any) -> int:
    return int(index.sum()) if index.dtype == bool else len(index)


def _chosen(values: dict[str, Any], keys: Sequence[str] | None) -> dict[str, Any]:
    return {key: value for key, value in values.items() if keys is None or key in keys}


def _check_keys(kind: str, keys: Sequence[str], known: Any) -> None:
    known = list(known)
    for key in keys:
        if key not in known:
            raise UnknownKeyError(f"{kind} has no {key!r}; it has {', '.join(map(str, known)) or 'nothing'}")
        if list(keys).count(key) > 1:
            raise UnknownKeyError(f"{key!r} is named twice; {kind} has only one")


def _check_alike(kind: str, names: Sequence[Collection[str]]) -> None:
    """Check that all batches have the first one's columns and no others."""
    pairs = [pair for index in range(1, len(names)) for pair in ((index, 0), (0, index))]
    for lacking, having in pairs:
        for key in names[having]:
            if key not in names[lacking]:
                raise InvalidValueError(
                    f"batch {lacking} has no {kind} {key!r}, which batch {having} has; concatenate equal columns"
                )


def _of_column(key: str, operation: Callable[..., Any], *args: Any) -> Any:
    """Return the operation's result; its error names the column."""
    try:
        return operation(*args)
    except (RuntimeError, TypeError, ValueError, KeyError) as error:
        raise InvalidValueError(f"column {key!r}: {error}") from error
