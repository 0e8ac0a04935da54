"""Wait with a deadline."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import ray

T = TypeVar("T")

_END_TIMEOUT = 30.0
"""Seconds within which Ray should have removed what was ended; normally it does so at once."""
_FIRST_PAUSE = 0.005
_LONGEST_PAUSE = 0.2
_QUIET_FOR = 10.0
"""Seconds before a wait says what it waits for."""
_MINUTE = 60.0
"""Seconds until it reports that again."""


def poll(
    question: Callable[[], T | None], *, timeout: float, describe: Callable[[float], str] | None = None
) -> T | None:
    """Ask repeatedly, with growing pauses, until the answer is truthy; return ``None`` after ``timeout`` seconds.

    Args:
        question: What to ask.
        timeout: Seconds.
        describe: Returns what is missing after that many seconds, for a line on standard error during a long wait.
    """
    started = time.monotonic()
    pause, quiet = _FIRST_PAUSE, _QUIET_FOR
    while not (answer := question()):
        waited = time.monotonic() - started
        if waited >= timeout:
            return None
        if describe is not None and waited >= quiet:
            print(f"[workergroups] still waiting: {describe(round(waited))}", file=sys.stderr, flush=True)
            quiet += _MINUTE
        time.sleep(min(pause, timeout - waited))
        pause = min(pause * 1.5, _LONGEST_PAUSE)
    return answer


def wait_for_end(gone: Callable[[], bool], *, what: str) -> None:
    """Wait until ``gone`` returns True. If it does not in time, warn that ``what`` may still hold its resources."""
    if not poll(gone, timeout=_END_TIMEOUT):
        warnings.warn(
            f"Ray has not ended {what} within {_END_TIMEOUT:g} s: they may still hold their resources. "
            "`ray list actors` and `ray list placement-groups` show what is left",
            RuntimeWarning,
            stacklevel=3,
        )


def not_ready(refs: Iterable[Any]) -> list[Any]:
    """Return the references that have neither a value nor an error yet."""
    refs = list(refs)
    pending: list[Any] = ray.wait(refs, num_returns=len(refs), timeout=0)[1]
    return pending
