"""Wait for the results of calls that did not wait for them."""

from __future__ import annotations

from typing import Any

import ray
from ray.exceptions import RayActorError, RayTaskError

from .rank_death import of_any_group


def get(refs: Any, *, timeout: float | None = None) -> Any:
    """Like ``ray.get``, for what ``execute_all_async`` and methods with ``blocking=False`` return.

    Raises:
        IncarnationReplacedError: The call was to ranks of a WorkerGroup that have been replaced since.
    """
    try:
        return ray.get(refs, timeout=timeout)
    except RayTaskError:
        raise  # the method's own exception, which may be of any kind
    except RayActorError as error:
        died = of_any_group(error)
        if died is error:
            raise
        raise died from error
