"""The dispatch modes: each a pair of functions that split arguments over ranks and collect results.

``dispatch_fn(group, *args, **kwargs)`` returns ``(args, kwargs)`` for `WorkerGroup.execute_all`: when every value in
them is a list of ``group.world_size``, element i goes to rank i. ``collect_fn(group, output)`` gets the list of the
ranks' results (or their futures, for a method that does not block) and returns what the caller sees.

Here are the modes that treat all ranks alike; `mesh_dispatch` has those of ranks that form a mesh.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

from workergroups.errors import InvalidTypeError, InvalidValueError

from .batches import chunk_arguments, concat, pad_arguments
from .call_notes import with_padding
from .worker_group import WorkerGroup

DispatchFn = Callable[..., tuple[Any, Any]]
CollectFn = Callable[..., Any]

_LARGE = 100_000
"""A value for all ranks that has at least this many bytes is stored once instead of sent once per rank."""


class DispatchFns(TypedDict):
    """The functions of a dispatch mode; users pass such a dictionary to ``register`` for their own mode."""

    dispatch_fn: DispatchFn
    collect_fn: CollectFn


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
    size = worker_group.world_size
    padded_args, padded_kwargs, padding = pad_arguments(size, args, kwargs)
    chunked_args, chunked_kwargs = chunk_arguments(size, padded_args, padded_kwargs)
    return chunked_args, with_padding(chunked_kwargs, padding)


def dispatch_dp_compute_data_proto_with_func(
    worker_group: WorkerGroup, /, *args: Any, **kwargs: Any
) -> tuple[list[list[Any]], dict[str, list[Any]]]:
    """Give every rank the function that is argument 0, and its chunk of each batch.

    Raises:
        TypeError: Argument 0 is no function, or another argument is no batch.
        ValueError: A batch does not divide by ``world_size``.
    """
    if not args or not callable(args[0]):
        raise InvalidTypeError("the first positional argument must be the function to run on each rank")
    size = worker_group.world_size
    chunked_args, chunked_kwargs = chunk_arguments(size, args[1:], kwargs)
    return [[args[0]] * size, *chunked_args], chunked_kwargs


def collect_dp_compute_data_proto(worker_group: WorkerGroup, output: Any) -> Any:
    """Join the ranks' batches to one; futures of batches to a `DataProtoFuture`."""
    return concat(output)


def dispatch_direct_rollout(worker_group: WorkerGroup, /, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """Refuse: such a method is called by the inference engine, not through the group."""
    raise NotImplementedError("a DIRECT_ROLLOUT_METHOD is called on the rank's actor, not through the group")


def _shared(worker_group: WorkerGroup, value: Any) -> Any:
    return worker_group.share(value) if getattr(value, "nbytes", 0) >= _LARGE else value


def _one_per_rank(name: str, value: Any, size: int) -> list[Any]:
    if not isinstance(value, list | tuple) or len(value) != size:
        got = f"{len(value)} elements" if isinstance(value, list | tuple) else f"a {type(value).__name__}"
        raise InvalidValueError(f"{name} must be a list or tuple with one element for each of {size} ranks, not {got}")
    return list(value)
