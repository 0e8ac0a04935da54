"""When to try again what failed: soon at first, then after growing pauses, and in the end not at all.

Unlike the pauses of `backoff`, these retries are few, counted, and stored where a restart of the operator keeps them.
"""

from datetime import datetime, timedelta

from workergroups_api.retries import Retries
from workergroups_operator.policy.deadline import clock

# The pause before each retry. The first one is immediate: most failures are accidents that happen once.
PAUSES_SECONDS = (0, 10, 20, 40, 80)
BUDGET = len(PAUSES_SECONDS)


def after_failure(retries: Retries, now: datetime) -> Retries:
    """Return the retries with one more failure: with the time of the next try, or without one if none is left."""
    failures = retries.failures + 1
    if failures > BUDGET:
        return Retries(failures=failures)
    pause = timedelta(seconds=PAUSES_SECONDS[failures - 1])
    # Whole seconds, as messages and statuses have them.
    return Retries(failures=failures, next=(now + pause).replace(microsecond=0) if pause else now)


def is_exhausted(retries: Retries) -> bool:
    """Return whether all retries have failed."""
    return retries.failures > BUDGET


def is_due(retries: Retries, now: datetime) -> bool:
    """Return whether the next try begins now."""
    return retries.next is not None and now >= retries.next


def begun(retries: Retries) -> Retries:
    """Return the retries with none waiting, since the next try has begun."""
    return Retries(failures=retries.failures)


def announced(retries: Retries) -> str:
    """Return the part of a message that says when the next try begins: `trying again at 03:04:05Z, 2 of 5`."""
    when = f" at {clock(retries.next)}" if retries.next else ""
    return f"trying again{when}, {retries.failures} of {BUDGET}"
