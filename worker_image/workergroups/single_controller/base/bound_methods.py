"""Give a group the methods that its ranks' class registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .batches import cut_padding
from .call_notes import take_padding
from .decorator import Execute, RegisteredMethod
from .worker_group import WorkerGroup


def bound_methods(handle: WorkerGroup, methods: Mapping[str, RegisteredMethod]) -> dict[str, Callable[..., Any]]:
    """Return an attribute of the group for each registered method: it dispatches, executes and collects."""
    return {name: _bound_method(handle, name, registered) for name, registered in methods.items()}


def _bound_method(handle: WorkerGroup, name: str, registered: RegisteredMethod) -> Callable[..., Any]:
    fns = registered.dispatch_fns()
    dispatch_fn, collect_fn = fns["dispatch_fn"], fns["collect_fn"]
    is_for_all, blocking = registered.execute_mode is Execute.ALL, registered.blocking

    def call(*args: Any, **kwargs: Any) -> Any:
        group = handle._for_one_call()
        args, kwargs = dispatch_fn(group, *args, **kwargs)
        padding = take_padding(kwargs)
        execute = group.execute_all if is_for_all else group.execute_rank_zero
        output = execute(name, *args, **kwargs)
        collected = collect_fn(group, group._get(name, output) if blocking else output)
        return collected if padding is None else cut_padding(collected, padding)

    call.__name__ = call.__qualname__ = name
    return call
