"""The dispatch modes: each a pair of functions that split arguments over ranks and collect results.

``dispatch_fn(group, *args, **kwargs)`` returns ``(args, kwargs)`` for `WorkerGroup.execute_all`: when every value in
them is a list of ``group.world_size``, element i goes to rank i. ``collect_fn(group, output)`` gets the list of the
ranks' results (or their futures, for a method that does not block) and returns what the caller sees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict

from .modes import Dispatch

if TYPE_CHECKING:
    from .worker_group import WorkerGroup

DispatchFn = Callable[..., tuple[Any, Any]]
CollectFn = Callable[..., Any]


class DispatchFns(TypedDict):
    """What a dispatch mode stands for; also what users pass to ``register`` for a mode of their own."""

    dispatch_fn: DispatchFn
    collect_fn: CollectFn


def dispatch_one_to_all(
    worker_group: WorkerGroup, *args: Any, **kwargs: Any
) -> tuple[tuple[list[Any], ...], dict[str, list[Any]]]:
    """Give every rank the same arguments."""
    size = worker_group.world_size
    return tuple([arg] * size for arg in args), {key: [value] * size for key, value in kwargs.items()}


def dispatch_all_to_all(worker_group: WorkerGroup, *args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Pass the arguments on as they are: lists of ``world_size`` are spread over the ranks, others are shared."""
    return args, kwargs


def collect_all_to_all(worker_group: WorkerGroup, output: Any) -> Any:
    """Return the ranks' results as they are: a list in rank order."""
    return output


_REGISTRY: dict[Dispatch, DispatchFns] = {
    Dispatch.ONE_TO_ALL: {"dispatch_fn": dispatch_one_to_all, "collect_fn": collect_all_to_all},
    Dispatch.ALL_TO_ALL: {"dispatch_fn": dispatch_all_to_all, "collect_fn": collect_all_to_all},
}


def get_predefined_dispatch_fn(dispatch_mode: Dispatch) -> DispatchFns:
    """The two functions behind a named mode.

    Raises:
        ValueError: No functions are registered for the mode.
    """
    try:
        return _REGISTRY[dispatch_mode]
    except KeyError:
        known = ", ".join(mode.name for mode in _REGISTRY)
        raise ValueError(f"no dispatch functions for {dispatch_mode!r}; the modes are {known}") from None
