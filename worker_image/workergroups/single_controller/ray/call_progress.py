"""The progress of a call, for a user who waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ray.actor import ActorHandle

from workergroups.ray_private.actors import actor_id
from workergroups.ray_private.cluster_state import actor_state
from workergroups.waiting import not_ready


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
