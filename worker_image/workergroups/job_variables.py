"""What a job's environment tells its driver."""

from __future__ import annotations

import os

from workergroups_api.vocabulary import JobVariable


def attempt() -> int:
    """Return which attempt of its job this program belongs to: 1 for the first, 2 for the first retry, and so on.

    Without ``workergroups job submit --retries``, it is 1. The command line submits an attempt only when the one before
    has ended. With the ``incarnation`` of a group, the number tells apart what the attempts write, such as checkpoints.

    Raises:
        ValueError: WG_ATTEMPT is not a number.
    """
    text = os.environ.get(JobVariable.ATTEMPT.value, "1")
    if not text.isdecimal():
        raise ValueError(
            f"{JobVariable.ATTEMPT.value} must be the number of an attempt, and is {text[:40]!r}: unset it"
        )
    return int(text)
