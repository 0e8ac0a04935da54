"""One column of a `DataProto` as it travels between processes, and back.

Dense and jagged tensors are the arrays of their bytes. Tensors of other layouts and classes are what torch writes of
them to a file.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any, NamedTuple

from workergroups.errors import InvalidTypeError
from workergroups.lazy import np, torch
from workergroups.transfers.memory import as_bytes, as_integers

from .on_device import Keeper

Encoded = tuple[str, tuple[int, ...], Any]
"""One dense tensor: dtype name, shape, and the bytes as a one-dimensional numpy array."""


class PackedTensor(NamedTuple):
    """One dense tensor as bytes."""

    data: Any
    """A one-dimensional numpy array of bytes; or `KeptBytes`, if they stay on the device of the rank that has them."""
    dtype: str
    shape: tuple[int, ...]
    device: str


class PackedJagged(NamedTuple):
    """One jagged nested tensor: the values of all rows, where each begins, and how long it is if there are holes."""

    values: PackedTensor
    offsets: PackedTensor
    lengths: PackedTensor | None
    ragged_dim: int
    """The dimension in which the rows differ."""


class PackedWhole(NamedTuple):
    """A tensor of another layout or class, as torch writes it to a file."""

    data: Any
    """A one-dimensional numpy array of bytes."""


PackedColumn = PackedTensor | PackedJagged | PackedWhole


def encode(tensor: Any) -> Encoded:
    """Return the values of a tensor; the bytes share its memory if they can."""
    host = as_integers(tensor.detach().cpu().resolve_conj().resolve_neg()).contiguous()
    return dtype_name(tensor), tuple(tensor.shape), as_bytes(host).numpy()


def dtype_name(tensor: Any) -> str:
    """Return what torch calls the type of a tensor's elements."""
    return str(tensor.dtype).removeprefix("torch.")


def decode(dtype: str, shape: tuple[int, ...], data: Any) -> Any:
    """Return the tensor of these values.

    It shares the memory of the bytes: a numpy array, which must be writable, or a tensor.
    """
    kind = getattr(torch, dtype)
    if not data.nbytes:  # torch does not view nothing as another type
        return torch.empty(shape, dtype=kind)
    memory = data if isinstance(data, torch.Tensor) else torch.from_numpy(data)
    return memory.view(kind).view(shape)


def is_plain(tensor: Any) -> bool:
    """Return whether the bytes of a tensor are its elements, one after the other."""
    is_strided = tensor.layout == torch.strided and not tensor.is_nested
    is_other = tensor.is_quantized or tensor.is_meta or type(tensor) not in (torch.Tensor, torch.nn.Parameter)
    return is_strided and not is_other


def ragged_dim(tensor: Any) -> int:
    """Return the dimension in which the rows of a jagged tensor differ."""
    return next(dim for dim, size in enumerate(tensor.shape) if isinstance(size, torch.SymInt))


def pack_column(
    key: str, column: Any, packed_offsets: dict[int, PackedTensor], keeper: Keeper | None = None
) -> PackedColumn:
    """Pack a tensor, without copying it if it is dense or jagged.

    Args:
        key: The column's name, for the error.
        column: The tensor.
        packed_offsets: The offsets of the batch's other jagged columns, by the id of their tensor; gets these too.
        keeper: Takes what stays on its device.

    Raises:
        TypeError: The tensor cannot be sent.
    """
    try:
        if column.is_nested and column.layout == torch.jagged:
            return _pack_jagged(column, packed_offsets, keeper)
        if column.is_nested and not column.size(0):
            raise ValueError("torch writes a strided nested tensor without rows, but cannot read it")
        return _pack_dense(column, keeper) if is_plain(column) else pack_whole(column)
    except Exception as error:
        kind = f"{type(column).__name__} of {column.dtype} and layout {column.layout}"
        raise InvalidTypeError(f"column {key!r} cannot be sent, since it is a {kind}; convert it: {error}") from error


def _pack_dense(tensor: Any, keeper: Keeper | None = None) -> PackedTensor:
    kept = None if keeper is None else keeper.keep(tensor)
    dtype, shape, data = encode(tensor) if kept is None else (dtype_name(tensor), tuple(tensor.shape), kept)
    return PackedTensor(data, dtype, shape, str(tensor.device))


def _pack_jagged(tensor: Any, packed_offsets: dict[int, PackedTensor], keeper: Keeper | None) -> PackedJagged:
    # Only jagged tensors that share their offsets can be added, so columns that share them must share them again.
    offsets = tensor.offsets()
    packed = packed_offsets.setdefault(id(offsets), _pack_dense(offsets))
    lengths = None if tensor.lengths() is None else _pack_dense(tensor.lengths())
    return PackedJagged(_pack_dense(tensor.values(), keeper), packed, lengths, ragged_dim(tensor))


def pack_whole(column: Any) -> PackedWhole:
    """Pack a tensor of any layout, or a TensorDict, by a copy."""
    file = io.BytesIO()
    # torch writes all of the memory that a view is a part of; a copy has its own.
    with contextlib.suppress(RuntimeError):  # torch cannot copy all that it can write
        column = column.clone()
    torch.save(column, file)
    return PackedWhole(np.frombuffer(file.getbuffer(), dtype=np.uint8))


def unpack_whole(column: PackedWhole) -> Any:
    """Return what was packed, in its own memory, on this process's own devices."""
    return torch.load(io.BytesIO(column.data), map_location=_OwnDevices(), weights_only=False)


class _OwnDevices(dict[Any, str]):
    """Each device and where its tensors go here. torch accepts no function for a tensor that consists of others."""

    def get(self, device: Any, default: Any = None) -> str:
        return str(here(str(device)))


def unpack_column(column: PackedColumn, offsets: dict[int, Any]) -> Any:
    """Return the tensor; one of dense values shares their memory, which must be writable.

    Args:
        column: The packed tensor.
        offsets: The offsets of the batch's other jagged columns, by the id of what they were packed as; gets these too.
    """
    if isinstance(column, PackedWhole):
        return unpack_whole(column)
    if isinstance(column, PackedTensor):
        return _unpack_dense(column)
    known = offsets.get(id(column.offsets))
    if known is None:
        known = offsets[id(column.offsets)] = _unpack_copy(column.offsets)
    lengths = None if column.lengths is None else _unpack_copy(column.lengths)
    return torch.nested.nested_tensor_from_jagged(
        _unpack_dense(column.values), known, lengths=lengths, jagged_dim=column.ragged_dim
    )


def _unpack_copy(column: PackedTensor) -> Any:
    return _unpack_dense(column._replace(data=np.array(column.data)))


def _unpack_dense(column: PackedTensor) -> Any:
    tensor = decode(column.dtype, column.shape, column.data)
    return tensor.to(here(column.device))


def here(device: str) -> Any:
    """Return where a tensor of a device goes in this process: to its own current device, to the host if it has none."""
    if device.startswith("cpu") or not torch.accelerator.is_available():
        return torch.device("cpu")
    return torch.device(torch.accelerator.current_accelerator().type, torch.accelerator.current_device_index())
