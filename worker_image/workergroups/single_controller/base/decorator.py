"""``@register``: declare how a group calls a worker's method on its ranks; and the call, on the group's side."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from workergroups import tracing
from workergroups.errors import InvalidTypeError
from workergroups.protocol import DataProto

from .dispatch import (
    DispatchFns,
    allowing_notes,
    collect_all_to_all,
    collect_dp_compute_data_proto,
    cut_padding,
    dispatch_all_to_all,
    dispatch_dp_compute,
    dispatch_dp_compute_data_proto,
    dispatch_one_to_all,
    materialize,
    take_discard,
    take_padding,
)
from .mesh_dispatch import make_nd_compute_dataproto_dispatch_fn
from .modes import Dispatch, Execute
from .registry import get_predefined_dispatch_fn, register_dispatch_mode, update_dispatch_mode
from .worker_group import WorkerGroup

__all__ = [
    "MAGIC_ATTR",
    "Dispatch",
    "DispatchFns",
    "Execute",
    "RegisteredMethod",
    "bound_methods",
    "collect_all_to_all",
    "collect_dp_compute_data_proto",
    "dispatch_all_to_all",
    "dispatch_dp_compute",
    "dispatch_dp_compute_data_proto",
    "dispatch_one_to_all",
    "get_predefined_dispatch_fn",
    "make_nd_compute_dataproto_dispatch_fn",
    "register",
    "register_dispatch_mode",
    "registered_methods",
    "update_dispatch_mode",
]

MAGIC_ATTR = "_workergroups_registered"
"""Where ``register`` leaves its `RegisteredMethod` on the function."""

_IS_GENERATOR = "the registered method {} is a generator, which no rank can send: return a list of what it yields"

_IS_IN_METHOD = ContextVar("is_in_method", default=False)

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class RegisteredMethod:
    """How a group calls one method of its ranks."""

    dispatch_mode: Dispatch | DispatchFns
    execute_mode: Execute
    blocking: bool
    role: str = ""
    """The role that the method belongs to, in a class of colocated roles."""
    is_wrapped: bool = False
    """Whether a decorator of the user's is above ``register``, which may not take the keywords that we add."""

    def dispatch_fns(self) -> DispatchFns:
        """Return the functions that split this method's arguments and collect its results."""
        if isinstance(self.dispatch_mode, Dispatch):
            return get_predefined_dispatch_fn(self.dispatch_mode)
        return self.dispatch_mode


def register(
    dispatch_mode: Dispatch | DispatchFns = Dispatch.ALL_TO_ALL,
    execute_mode: Execute = Execute.ALL,
    blocking: bool = True,
    materialize_futures: bool = True,
) -> Callable[[F], F]:
    """Let a worker group call this method as its own.

    Args:
        dispatch_mode: How arguments are split and results collected: a `Dispatch` mode, or a dictionary with the
            user's own ``dispatch_fn`` and ``collect_fn`` (see `workergroups.single_controller.base.dispatch`).
        execute_mode: `Execute.ALL` ranks, or `Execute.RANK_ZERO`, which returns that rank's result itself.
        blocking: Whether the call waits for the results. Otherwise it returns Ray object references, or a
            `DataProtoFuture` where the mode joins batches.
        materialize_futures: Whether the method gets the data of a `DataProtoFuture` that it is called with.

    Raises:
        TypeError: ``dispatch_mode`` or ``execute_mode`` is neither of these, or the method is a generator, which has no
            result that a rank could send. A DIRECT_ROLLOUT_METHOD, which is not called through the group, may be one.
    """
    _check_dispatch_mode(dispatch_mode)
    if not isinstance(execute_mode, Execute):
        raise InvalidTypeError(f"execute_mode must be Execute.ALL or Execute.RANK_ZERO, not {execute_mode!r}")
    registered = RegisteredMethod(dispatch_mode, execute_mode, blocking)

    def decorate(function: F) -> F:
        is_generator = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
        if is_generator and dispatch_mode is not Dispatch.DIRECT_ROLLOUT_METHOD:
            raise InvalidTypeError(_IS_GENERATOR.format(function.__qualname__))
        method = _on_rank(function, materialize_futures)
        setattr(method, MAGIC_ATTR, registered)
        return cast(F, method)

    return decorate


def _on_rank(function: Callable[..., Any], materialize_futures: bool) -> Callable[..., Any]:
    """Return the method as it runs on a rank: it gets data for futures, and returns only what is collected."""

    def prepare(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any], bool]:
        discard = take_discard(kwargs)
        if materialize_futures:
            args, kwargs = materialize(args, kwargs)
        return args, kwargs, discard

    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return function
    name = getattr(function, "__name__", type(function).__name__)

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def method(*args: Any, **kwargs: Any) -> Any:
            with tracing.of_rank(name, kwargs.pop(tracing.NOTE, None)):
                args, kwargs, discard = prepare(args, kwargs)
                with _call() as is_from_driver:
                    result = await function(*args, **kwargs)
            return None if discard else _sendable(function, result, is_from_driver)

    else:

        @functools.wraps(function)
        def method(*args: Any, **kwargs: Any) -> Any:
            with tracing.of_rank(name, kwargs.pop(tracing.NOTE, None)):
                args, kwargs, discard = prepare(args, kwargs)
                with _call() as is_from_driver:
                    result = function(*args, **kwargs)
            return None if discard else _sendable(function, result, is_from_driver)

    # Ray checks calls against the signature, which it would take from the wrapped function.
    del method.__wrapped__
    method.__signature__ = allowing_notes(inspect.signature(function))  # type: ignore[attr-defined]
    return method


@contextmanager
def _call() -> Iterator[bool]:
    """Enter a registered method; yields whether it was not called by another one of the rank's."""
    is_outermost = not _IS_IN_METHOD.get()
    token = _IS_IN_METHOD.set(True)
    try:
        yield is_outermost
    finally:
        _IS_IN_METHOD.reset(token)


def _sendable(function: Callable[..., Any], result: Any, is_from_driver: bool) -> Any:
    # A decorator of the user's may hide that the method is a generator.
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        raise InvalidTypeError(_IS_GENERATOR.format(function.__qualname__))
    if is_from_driver and isinstance(result, DataProto):
        return result.kept_on_device(function.__name__)
    return result


def _check_dispatch_mode(dispatch_mode: object) -> None:
    if isinstance(dispatch_mode, Dispatch):
        return
    if not isinstance(dispatch_mode, dict):
        raise InvalidTypeError(
            f"dispatch_mode must be a Dispatch mode, or a dictionary of dispatch_fn and collect_fn: {dispatch_mode!r}"
        )
    missing = [key for key in ("dispatch_fn", "collect_fn") if not callable(dispatch_mode.get(key))]
    if missing:
        raise InvalidTypeError(f"the dispatch_mode dictionary must have a function under {' and '.join(missing)}")


def registered_methods(cls: type) -> dict[str, RegisteredMethod]:
    """Return the methods of a class that ``register`` decorates, inherited ones included, by name."""
    found = {}
    for name in dir(cls):
        # Look it up statically: a property or a descriptor of the user must not run here.
        method = inspect.getattr_static(cls, name)
        registered = getattr(method, MAGIC_ATTR, None)
        if isinstance(registered, RegisteredMethod):
            # What ``register`` returns has no such attribute; a user's ``functools.wraps`` gives it one.
            is_wrapped = hasattr(method, "__wrapped__")
            found[name] = dataclasses.replace(registered, is_wrapped=True) if is_wrapped else registered
    return found


def bound_methods(handle: WorkerGroup, methods: Mapping[str, RegisteredMethod]) -> dict[str, Callable[..., Any]]:
    """Return an attribute of the group for each registered method: it dispatches, executes and collects."""
    return {name: _bound_method(handle, name, registered) for name, registered in methods.items()}


def _bound_method(handle: WorkerGroup, name: str, registered: RegisteredMethod) -> Callable[..., Any]:
    fns = registered.dispatch_fns()
    dispatch_fn, collect_fn = fns["dispatch_fn"], fns["collect_fn"]
    is_for_all, blocking = registered.execute_mode is Execute.ALL, registered.blocking
    role, is_wrapped = registered.role, registered.is_wrapped

    def call(*args: Any, **kwargs: Any) -> Any:
        group = handle._for_one_call()
        with tracing.of_call(group.name_prefix, role, name, reaches_ranks=not is_wrapped):
            args, kwargs = dispatch_fn(group, *args, **kwargs)
            padding = take_padding(kwargs)
            execute = group.execute_all if is_for_all else group.execute_rank_zero
            output = execute(name, *args, **kwargs)
            collected = collect_fn(group, group._get(name, output) if blocking else output)
        return collected if padding is None else cut_padding(collected, padding)

    call.__name__ = call.__qualname__ = name
    return call
