"""For how long the reconciles of a cluster have failed although the API server answers: then the state is unknown.

While the API server does not answer, statuses stay as they are. So does a status during a failure that one retry ends.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from workergroups_api.conditions import Explanation
from workergroups_operator.membership import ClusterKey
from workergroups_operator.timings import Timings


@dataclass
class _Failing:
    # Why the first reconcile failed. The reasons of the next ones may alternate.
    why: Explanation
    # Since when some of the cluster's pools and groups can be read after each of these reconciles.
    some_since: float
    # The same for all of them; None if not all can be read.
    all_since: float | None = None


class FailingReconciles:
    """What the operator remembers of the clusters whose last reconcile failed."""

    def __init__(self, timings: Timings, clock: Callable[[], float] = time.monotonic) -> None:
        self._timings = timings
        self._clock = clock
        self._failing: dict[ClusterKey, _Failing] = {}

    def doubt(self, key: ClusterKey, why: Explanation, *, are_all_read: bool) -> Explanation | None:
        """Take note of a reconcile that failed, after which some, or all, pools and groups could be read.

        Return why the statuses of the cluster are in doubt; None if they are not yet.
        """
        now = self._clock()
        failing = self._failing.setdefault(key, _Failing(why, now))
        failing.all_since = (failing.all_since or now) if are_all_read else None
        is_long = now - failing.some_since >= self._timings.partly_unread
        is_sure = failing.all_since is not None and now - failing.all_since >= self._timings.unread
        return failing.why if is_long or is_sure else None

    def forget(self, key: ClusterKey) -> None:
        """Forget the failures: a reconcile has succeeded, or the API server answers nothing about the cluster."""
        self._failing.pop(key, None)
