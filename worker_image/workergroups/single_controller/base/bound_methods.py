"""Give a group the methods that its ranks' class registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from .batches import cut_padding
from .call_notes import take_padding
from .decorator import Execute, RegisteredMethod
from .worker_group import WorkerGroup


def bind_methods(group: WorkerGroup, methods: Mapping[str, RegisteredMethod]) -> None:
    """Make each registered method an attribute of the group: it dispatches, executes and collects."""
    for name, registered in methods.items():
        setattr(group, name, _bound_method(group, name, registered))


def _bound_method(group: WorkerGroup, name: str, registered: RegisteredMethod) -> Callable[..., Any]:
    fns = registered.dispatch_fns()
    dispatch_fn, collect_fn = fns["dispatch_fn"], fns["collect_fn"]
    execute = group.execute_all if registered.execute_mode is Execute.ALL else group.execute_rank_zero
    run = partial(execute, name)
    blocking = registered.blocking

    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = dispatch_fn(group, *args, **kwargs)
        padding = take_padding(kwargs)
        output = run(*args, **kwargs)
        collected = collect_fn(group, group._get(name, output) if blocking else output)
        return collected if padding is None else cut_padding(collected, padding)

    call.__name__ = call.__qualname__ = name
    return call
