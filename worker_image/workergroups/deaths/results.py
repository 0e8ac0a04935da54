"""Wait for the results of calls that did not wait for them."""

from __future__ import annotations

from typing import Any

import ray

from workergroups.deaths.rank_death import CALL_ERRORS, raise_error_of_call


def get(refs: Any, *, timeout: float | None = None) -> Any:
    """Like ``ray.get``, for what ``execute_all_async`` and methods with ``blocking=False`` return.

    Raises:
        RankDiedError: The call was to a WorkerGroup, and one of its ranks died. Without a group, the rank of a group
            that a program created is not recognized, and Ray's own error is raised.
        IncarnationReplacedError: The ranks of the WorkerGroup have been replaced since; it is a `RankDiedError`.
        RankRaisedError: A method raised on a rank of a WorkerGroup; it is also an error of the exception's class.
    """
    try:
        return ray.get(refs, timeout=timeout)
    except CALL_ERRORS as error:
        raise_error_of_call(error, refs if isinstance(refs, list) else [refs])
