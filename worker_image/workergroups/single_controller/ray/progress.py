"""Show the progress of a long wait at a terminal. Nothing is written to logs."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ray
from ray.actor import ActorHandle
from ray.exceptions import GetTimeoutError, RayTaskError

from workergroups.ray_private.actors import actor_id
from workergroups.ray_private.cluster_state import actor_state
from workergroups.waiting import not_ready

_QUIET_FOR = 2.0
"""Seconds before progress is shown."""
_REFRESH = 1.0
_CLEAR_LINE = "\r\x1b[K"


def get(output: Any, *, timeout: float | None, describe: Callable[[], str]) -> Any:
    """Like ``ray.get``; at a terminal, show what ``describe`` returns every second during a long wait."""
    if sys.stderr is None or not sys.stderr.isatty():
        return ray.get(output, timeout=timeout)
    started = time.monotonic()
    with _line() as show:
        pause = _QUIET_FOR
        while True:
            remaining = None if timeout is None else max(0.0, started + timeout - time.monotonic())
            try:
                return ray.get(output, timeout=pause if remaining is None else min(pause, remaining))
            except RayTaskError:
                raise  # the method's own exception, which may be a GetTimeoutError as well
            except GetTimeoutError:
                if remaining is not None and remaining <= pause:
                    raise
            show(f"{describe()} ({time.monotonic() - started:.0f} s)")
            pause = _REFRESH


class CallProgress:
    """Says how many ranks have returned from a call, or how many are up while some are not.

    Args:
        method_name: The method that was called.
        refs: Its references, in rank order; one alone is rank 0's.
        workers: The group's ranks.
    """

    def __init__(self, method_name: str, refs: Sequence[Any], workers: Sequence[ActorHandle]) -> None:
        self._method_name = method_name
        self._refs = refs
        self._not_up = list(workers[: len(refs)])

    def __call__(self) -> str:
        """Return the line to show."""
        total = len(self._refs)
        self._not_up = [worker for worker in self._not_up if not _is_up(worker)]
        if self._not_up:
            return f"{self._method_name}: {total - len(self._not_up)} of {total} ranks are up"
        return f"{self._method_name}: {total - len(not_ready(self._refs))} of {total} ranks have returned"


def _is_up(worker: ActorHandle) -> bool:
    state = actor_state(actor_id(worker))
    return state is not None and state.state == "ALIVE"


@contextlib.contextmanager
def _line() -> Iterator[Callable[[str], None]]:
    """Return a function that shows a text in one line of the terminal, which is cleared at the end."""
    shown = False

    def show(text: str) -> None:
        nonlocal shown
        shown = True
        sys.stderr.write(_CLEAR_LINE + text)
        sys.stderr.flush()

    try:
        yield show
    finally:
        if shown:
            show("")
