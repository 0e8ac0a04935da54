"""Split batches over ranks, and join them again.

A batch is anything with a length and ``chunk(chunks)``: a `DataProto`, a `DataProtoFuture`, a TensorDict. This module
needs none of them to be installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ray

from workergroups.errors import InvalidTypeError, InvalidValueError
from workergroups.protocol import DataProtoFuture
from workergroups.protocol.joining import join

from .call_notes import Padding


def pad_arguments(
    chunks: int, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any], Padding | None]:
    """Return padded copies of the batches that have padding on and do not divide by ``chunks``.

    The caller's batches do not change. If no batch needs padding, the padding is ``None``.

    Raises:
        ValueError: Batches to be padded differ in length, so that no one padding could be cut off the result.
    """
    named = {**{f"argument {index}": arg for index, arg in enumerate(args)}, **kwargs}
    lengths = {name: len(value) for name, value in named.items() if _wants_padding(value)}
    if not lengths or not any(length % chunks for length in lengths.values()):
        return list(args), dict(kwargs), None
    if len(set(lengths.values())) > 1:
        raise InvalidValueError(f"batches that are padded must have one length, not {lengths}")
    rows = next(iter(lengths.values()))
    padding = Padding(rows, rows + -rows % chunks)

    def padded(value: Any) -> Any:
        return value.padded(padding.padded_rows - rows) if _wants_padding(value) else value

    return [padded(arg) for arg in args], {key: padded(value) for key, value in kwargs.items()}, padding


def chunk_arguments(
    chunks: int, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[list[Any]], dict[str, list[Any]]]:
    """Split each argument into ``chunks`` batches of equal length.

    Raises:
        ValueError: One does not divide.
        TypeError: One is no batch.
    """
    return (
        [_chunk(f"argument {index}", arg, chunks) for index, arg in enumerate(args)],
        {key: _chunk(f"argument {key!r}", value, chunks) for key, value in kwargs.items()},
    )


def concat(output: Sequence[Any]) -> Any:
    """Join what ranks returned: batches to a batch, and Ray references to a `DataProtoFuture`.

    Raises:
        TypeError: The ranks did not return batches of one type.
    """
    return DataProtoFuture.concat(list(output)) if isinstance(output[0], ray.ObjectRef) else join(output)


def materialize(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments with the data of those that are futures of batches."""
    if any(_is_future(value) for value in (*args, *kwargs.values())):
        args = tuple(arg.get() if _is_future(arg) else arg for arg in args)
        kwargs = {key: value.get() if _is_future(value) else value for key, value in kwargs.items()}
    return args, kwargs


def cut_padding(output: Any, padding: Padding) -> Any:
    """Return the output without padding, if it is a batch with a row for each row of the padded input."""
    cut = getattr(output, "without_padding", None)
    return output if cut is None else cut(*padding)


def _wants_padding(value: Any) -> bool:
    enabled = getattr(value, "is_padding_enabled", None)
    return enabled is not None and bool(enabled())


def _chunk(name: str, value: Any, chunks: int) -> list[Any]:
    if not hasattr(value, "chunk"):
        raise InvalidTypeError(
            f"{name} is a {type(value).__name__}, which cannot be split over ranks: pass a DataProto or a TensorDict, "
            "or put what every rank needs into meta_info"
        )
    if hasattr(value, "__len__") and len(value) % chunks:
        raise InvalidValueError(
            f"{name} has {len(value)} rows, which do not divide into {chunks} chunks of equal length: pass "
            f"{len(value) + -len(value) % chunks} rows, or a DataProto with auto_padding=True"
        )
    return list(value.chunk(chunks))


def _is_future(value: Any) -> bool:
    return isinstance(value, DataProtoFuture)
