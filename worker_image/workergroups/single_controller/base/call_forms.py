"""Functions that take the user's arguments and one of ours, whose names must never collide."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Concatenate, TypeVar

    S = TypeVar("S")
    R = TypeVar("R")
    Method = Callable[Concatenate[S, ...], R]  # Python 3.10 cannot make it


def first_by_name(name: str) -> Callable[[Method[S, R]], Method[S, R]]:
    """Let callers give a method's first, positional-only argument by this name as well, as verl's users do.

    A keyword of that name next to positional arguments is the user's: ``RayClassWithInitArgs(Model, cls="resnet")``.
    """

    def decorate(method: Method[S, R]) -> Method[S, R]:
        @functools.wraps(method)
        def call(self: S, /, *args: Any, **kwargs: Any) -> R:
            if not args and name in kwargs:
                args = (kwargs.pop(name),)
            return method(self, *args, **kwargs)

        # The signature is this one's: Ray checks calls against it.
        del call.__wrapped__
        return call

    return decorate
