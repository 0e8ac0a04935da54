"""What a group does to the arguments of a call and to its results: the dispatch modes, and what they are made of.

A dispatch mode is a pair of functions that split arguments over ranks and collect results.
``dispatch_fn(group, *args, **kwargs)`` returns ``(args, kwargs)`` for `WorkerGroup.execute_all`: when every value in
them is a list of ``group.world_size``, element i goes to rank i. ``collect_fn(group, output)`` gets the list of the
ranks' results (or their futures, for a method that does not block) and returns what the caller sees.

Here are the modes that treat all ranks alike; `mesh_dispatch` has those of ranks that form a mesh. A batch is anything
with a length and ``chunk(chunks)``: a `DataProto`, a `DataProtoFuture`, a TensorDict, none of which must be installed.

What a dispatch function tells its group, and the group its ranks, about one call (padding, and unwanted results)
travels among the keywords of the call, under names that no user's argument has. There is no other way: a dispatch
function returns ``(args, kwargs)``, users wrap these functions and pass on what they return, and a rank gets the
arguments of a Ray actor's method and nothing else. The span of the call comes to each rank in the same way.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

import ray

from workergroups import tracing
from workergroups.errors import InvalidTypeError, InvalidValueError
from workergroups.protocol import DataProtoFuture
from workergroups.protocol.joining import join

from .worker_group import WorkerGroup

DispatchFn = Callable[..., tuple[Any, Any]]
CollectFn = Callable[..., Any]

_LARGE = 100_000
"""A value for all ranks that has at least this many bytes is stored once instead of sent once per rank."""
_PADDING = "_workergroups_padding"
_DISCARD = "_workergroups_discard"


class DispatchFns(TypedDict):
    """The functions of a dispatch mode; users pass such a dictionary to ``register`` for their own mode."""

    dispatch_fn: DispatchFn
    collect_fn: CollectFn


class Padding(NamedTuple):
    """How a batch was padded so that it divides over the ranks."""

    rows: int
    """The batch's length."""
    padded_rows: int
    """Its length with padding."""


def dispatch_one_to_all(
    worker_group: WorkerGroup, /, *args: Any, **kwargs: Any
) -> tuple[tuple[list[Any], ...], dict[str, list[Any]]]:
    """Give every rank the same arguments."""
    size = worker_group.world_size
    return (
        tuple([_shared(worker_group, arg)] * size for arg in args),
        {key: [_shared(worker_group, value)] * size for key, value in kwargs.items()},
    )


def dispatch_all_to_all(
    worker_group: WorkerGroup, /, *args: Any, **kwargs: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Pass the arguments on unchanged: lists of ``world_size`` are spread over the ranks, others are shared."""
    return args, kwargs


def collect_all_to_all(worker_group: WorkerGroup, output: Any) -> Any:
    """Return the ranks' results as they are: a list in rank order."""
    return output


def dispatch_dp_compute(
    worker_group: WorkerGroup, /, *args: Any, **kwargs: Any
) -> tuple[tuple[list[Any], ...], dict[str, list[Any]]]:
    """Spread sequences of ``world_size`` over the ranks.

    Raises:
        ValueError: An argument is no list or tuple of that length.
    """
    size = worker_group.world_size
    return (
        tuple(_one_per_rank(f"argument {index}", arg, size) for index, arg in enumerate(args)),
        {key: _one_per_rank(f"argument {key!r}", value, size) for key, value in kwargs.items()},
    )


def dispatch_dp_compute_data_proto(
    worker_group: WorkerGroup, /, *args: Any, **kwargs: Any
) -> tuple[list[list[Any]], dict[str, Any]]:
    """Give each rank its chunk of each batch; pad batches that do not divide, where padding is on.

    Raises:
        ValueError: A batch does not divide by ``world_size``, and padding is off.
        TypeError: An argument is no batch.
    """
    chunked_args, chunked_kwargs, padding = split_arguments(worker_group.world_size, args, kwargs)
    return chunked_args, with_padding(chunked_kwargs, padding)


def dispatch_dp_compute_data_proto_with_func(
    worker_group: WorkerGroup, /, *args: Any, **kwargs: Any
) -> tuple[list[list[Any]], dict[str, Any]]:
    """Give every rank the function that is argument 0, and its chunk of each batch, padded where padding is on.

    Raises:
        TypeError: Argument 0 is no function, or another argument is no batch.
        ValueError: A batch does not divide by ``world_size``, and padding is off.
    """
    if not args or not callable(args[0]):
        raise InvalidTypeError("the first positional argument must be the function to run on each rank")
    size = worker_group.world_size
    chunked_args, chunked_kwargs, padding = split_arguments(size, args[1:], kwargs)
    return [[args[0]] * size, *chunked_args], with_padding(chunked_kwargs, padding)


def collect_dp_compute_data_proto(worker_group: WorkerGroup, output: Any) -> Any:
    """Join the ranks' batches to one; futures of batches to a `DataProtoFuture`."""
    return concat(output)


def dispatch_direct_rollout(worker_group: WorkerGroup, /, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """Refuse: such a method is called by the inference engine, not through the group."""
    raise NotImplementedError("a DIRECT_ROLLOUT_METHOD is called on the rank's actor, not through the group")


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


def split_arguments(
    chunks: int, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[list[Any]], dict[str, list[Any]], Padding | None]:
    """Split each argument into ``chunks`` batches of equal length, after padding; errors are those of the two steps."""
    padded_args, padded_kwargs, padding = pad_arguments(chunks, args, kwargs)
    return *chunk_arguments(chunks, padded_args, padded_kwargs), padding


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


def with_padding(kwargs: Mapping[str, Any], padding: Padding | None) -> dict[str, Any]:
    """Return the keywords with a note for the group: cut this padding off the result."""
    return dict(kwargs) if padding is None else {**kwargs, _PADDING: padding}


def take_padding(kwargs: dict[str, Any]) -> Padding | None:
    """Remove the note about padding from the keywords, and return it."""
    padding: Padding | None = kwargs.pop(_PADDING, None)
    return padding


def with_discards(kwargs: Mapping[str, Any], discards: Sequence[bool]) -> dict[str, Any]:
    """Return the keywords with a note for each rank, in rank order: whether its result is not collected."""
    return {**kwargs, _DISCARD: list(discards)} if any(discards) else dict(kwargs)


def take_discard(kwargs: dict[str, Any]) -> bool:
    """Remove a rank's note from the keywords; return whether its result is not collected."""
    return bool(kwargs.pop(_DISCARD, False))


def allowing_notes(signature: inspect.Signature) -> inspect.Signature:
    """Return the signature of a rank's method, against which Ray checks calls, with room for the rank's notes."""
    parameters = list(signature.parameters.values())
    keywords = [parameter for parameter in parameters if parameter.kind is inspect.Parameter.VAR_KEYWORD]
    notes = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in (_DISCARD, tracing.NOTE)]
    return signature.replace(parameters=[*parameters[: len(parameters) - len(keywords)], *notes, *keywords])


def _shared(worker_group: WorkerGroup, value: Any) -> Any:
    return worker_group.share(value) if getattr(value, "nbytes", 0) >= _LARGE else value


def _one_per_rank(name: str, value: Any, size: int) -> list[Any]:
    if not isinstance(value, list | tuple) or len(value) != size:
        got = f"{len(value)} elements" if isinstance(value, list | tuple) else f"a {type(value).__name__}"
        raise InvalidValueError(f"{name} must be a list or tuple with one element for each of {size} ranks, not {got}")
    return list(value)


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
        others = "" if _wants_padding(value) else ", or a batch of DataProto.from_dict(..., auto_padding=True)"
        raise InvalidValueError(
            f"{name} has {len(value)} rows, which do not divide into {chunks} chunks of equal length: pass "
            f"{len(value) + -len(value) % chunks} rows{others}"
        )
    return list(value.chunk(chunks))


def _is_future(value: Any) -> bool:
    return isinstance(value, DataProtoFuture)
