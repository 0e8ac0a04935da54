"""Show the progress of a long wait: at a terminal, and elsewhere in a program that has started Ray itself.

That is a notebook or a script on a laptop. Nothing is written to the logs of jobs.
"""

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
from workergroups.ray_private.process import has_started_ray
from workergroups.waiting import not_ready
from workergroups_common.ranges import ranges

_QUIET_FOR = 2.0
"""Seconds before progress is shown."""
_REFRESH = 1.0
_MINUTE = 60.0
"""Seconds between the lines where they cannot replace one another."""
_CLEAR_LINE = "\r\x1b[K"


def get(output: Any, *, timeout: float | None, describe: Callable[[], str]) -> Any:
    """Like ``ray.get``; show what ``describe`` returns during a long wait: every second, or a line each minute."""
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    if not is_terminal and (sys.stderr is None or not has_started_ray()):
        return ray.get(output, timeout=timeout)
    started = time.monotonic()
    with _line() if is_terminal else contextlib.nullcontext(_print) as show:
        pause = _QUIET_FOR if is_terminal else _MINUTE
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
            pause = _REFRESH if is_terminal else _MINUTE


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
        waiting = set(not_ready(self._refs))
        late = ranges(rank for rank, ref in enumerate(self._refs) if ref in waiting)
        has_returned = f"{self._method_name}: {total - len(waiting)} of {total} ranks have returned"
        return f"{has_returned}; not yet: {late}" if 0 < len(waiting) < total else has_returned


def _is_up(worker: ActorHandle) -> bool:
    state = actor_state(actor_id(worker))
    return state is not None and state.state == "ALIVE"


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


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
