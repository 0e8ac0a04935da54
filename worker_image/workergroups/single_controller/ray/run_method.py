"""The method by which a rank runs what its WorkerGroup's `run` names: once, with a record of how that ended."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import ray
from ray.actor import ActorHandle

from workergroups.announcements import notices, runs
from workergroups.ray_private.actors import has_async_methods
from workergroups.stacks.exception_text import exception_line

RUN_METHOD = "_workergroups_run"
"""No user's method has this name."""


def run_method(cls: type) -> Callable[..., Any]:
    """Return the method for the ranks of this class; a coroutine if Ray runs the class's methods in an event loop."""

    def run(self: Any, method: str, kwargs: Mapping[str, Any]) -> None:
        actor_id = ray.get_runtime_context().get_actor_id()
        if runs.begin(actor_id):
            with _recorded_end(actor_id):
                _check(_method(self, method)(**kwargs), method)

    async def run_async(self: Any, method: str, kwargs: Mapping[str, Any]) -> None:
        actor_id = ray.get_runtime_context().get_actor_id()
        if runs.begin(actor_id):
            with _recorded_end(actor_id):
                result = _method(self, method)(**kwargs)
                if inspect.isawaitable(result):
                    result = await result
                _check(result, method)

    return run_async if has_async_methods(cls) else run


def start_run(rank: ActorHandle, method: str, kwargs: Mapping[str, Any]) -> Any:
    """Start the run on a rank; return the reference of its end. In Ray's lists, the call has the name of the method."""
    # By keywords: without the class, Ray knows no others.
    return getattr(rank, RUN_METHOD).options(name=method).remote(method=method, kwargs=dict(kwargs))


@contextmanager
def _recorded_end(actor_id: str) -> Iterator[None]:
    """Record that what runs here has returned, or which exception it has raised, and raise nothing.

    What returns because the rank is about to end has not finished: the next incarnation continues it.
    """
    error = None
    try:
        yield
    except Exception as raised:
        error = _told(raised)
    if error is None and (given := notices.of_this_rank()):
        print(f"returned after a notice, so the run is not over: {given.reason}", file=sys.stderr, flush=True)
        return
    runs.end(actor_id, error)


def _method(rank: Any, name: str) -> Any:
    try:
        return getattr(rank, name)
    except AttributeError:
        known = sorted(each for each in dir(rank) if not each.startswith("_") and callable(getattr(rank, each, None)))
        shown = type(rank).__name__
        raise AttributeError(f"spec.run.method: {shown} has no method {name!r}; it has {', '.join(known)}") from None


def _check(result: Any, method: str) -> None:
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        raise TypeError(
            f"spec.run.method: {method!r} is a generator, of which nothing runs until its values are requested: "
            "name a method that returns"
        )


def _told(error: Exception) -> str:
    """Print the traceback to the rank's log, and return its last line."""
    traceback.print_exception(error, file=sys.stderr)
    line = exception_line("".join(traceback.format_exception_only(error)))
    return line or type(error).__name__
