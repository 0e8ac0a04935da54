"""Wrap the methods of a class so that a debugger sees an exception before it leaves one of them."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any

OnError = Callable[[Exception], None]


def with_post_mortem(cls: type, on_error: OnError) -> dict[str, Any]:
    """Return the methods of a class by name, each of which calls ``on_error`` before an exception leaves it.

    If methods call each other, only the outermost one calls it, since a method may catch what another one raises.
    """
    methods = {name: inspect.getattr_static(cls, name) for name in dir(cls) if not name.startswith("__")}
    return {name: _wrap(method, on_error) for name, method in methods.items() if isinstance(method, FunctionType)}


def _wrap(method: FunctionType, on_error: OnError) -> Any:
    wrap = next((wrap for is_such, wrap in _KINDS if is_such(method)), _function)
    return functools.wraps(method)(wrap(method, on_error))


def _function(method: Callable[..., Any], on_error: OnError) -> Any:
    def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        with _Watched(on_error):
            return method(self, *args, **kwargs)

    return call


def _coroutine(method: Callable[..., Any], on_error: OnError) -> Any:
    async def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        with _Watched(on_error):
            return await method(self, *args, **kwargs)

    return call


def _generator(method: Callable[..., Any], on_error: OnError) -> Any:
    def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        with _Watched(on_error):
            return (yield from method(self, *args, **kwargs))

    return call


def _async_generator(method: Callable[..., Any], on_error: OnError) -> Any:
    async def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        with _Watched(on_error):
            async for value in method(self, *args, **kwargs):
                yield value

    return call


_KINDS: tuple[tuple[Callable[[Any], bool], Callable[[Any, OnError], Any]], ...] = (
    (inspect.iscoroutinefunction, _coroutine),
    (inspect.isgeneratorfunction, _generator),
    (inspect.isasyncgenfunction, _async_generator),
)


_CALLS = {
    code
    for wrap in (_function, _coroutine, _generator, _async_generator)
    for code in wrap.__code__.co_consts
    if isinstance(code, CodeType)
}
"""The code of the functions above that replace methods."""


class _Watched:
    """A context around a method: it passes an exception to ``on_error``, for the outermost method only."""

    def __init__(self, on_error: OnError) -> None:
        self._on_error = on_error

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, Exception) and not _is_in_method(sys._getframe(1).f_back):
            self._on_error(error)


def _is_in_method(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code in _CALLS:
            return True
        frame = frame.f_back
    return False
