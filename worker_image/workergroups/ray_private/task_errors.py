"""Change what this process reports to Ray of its methods' exceptions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ray.exceptions import RayTaskError

Change = Callable[[str, BaseException], "tuple[str, BaseException]"]


def change_own(actor_id: str, change: Change) -> None:
    """Let errors of this process's actor have the traceback and the cause that ``change`` returns.

    Ray makes them in compiled code, which ends the process if the exception cannot be pickled. Errors that come from
    other processes are left alone.
    """
    original = RayTaskError.__init__
    signature = inspect.signature(original)

    def __init__(*args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        if bound.arguments.get("actor_id") == actor_id:
            told = bound.arguments
            told["traceback_str"], told["cause"] = change(told["traceback_str"], told["cause"])
        original(*bound.args, **bound.kwargs)

    RayTaskError.__init__ = __init__
