"""Saying which rank died, and why."""

from __future__ import annotations

from collections.abc import Sequence

from ray.actor import ActorHandle
from ray.exceptions import ActorDiedError

from workergroups.errors import RankDiedError
from workergroups.last_line import last_line

from .cluster_state import ActorState, actor_state
from .last_words import last_words
from .on_nodes import ask_nodes

_NODE_TIMEOUT = 10.0
"""Seconds that a node has to say more about a death than Ray does."""


def rank_died(error: ActorDiedError, workers: Sequence[ActorHandle]) -> RankDiedError:
    """The error to raise instead of Ray's, which does not know of ranks."""
    ids = [worker._actor_id.hex() for worker in workers]
    rank = ids.index(error.actor_id)
    state = actor_state(error.actor_id)
    # The error can be here before the GCS has heard of the death.
    cause = (state.death_cause if state else "") or str(error)
    where = _where(state)
    if error._actor_init_failed:
        message = f"rank {rank} of {len(ids)}{where} failed in its constructor: {last_line(cause)}\n{cause}"
    else:
        message = "\n".join([f"rank {rank} of {len(ids)}{where} died: {cause}", *_left_behind(state)])
    return RankDiedError(rank, error.actor_id, message, cause)


def _left_behind(state: ActorState | None) -> list[str]:
    """What its node knows of the death, which Ray does not: crashes and killings for memory."""
    if state is None or not state.pid:
        return []
    return ask_nodes(last_words, [state.node_id], state.pid, timeout=_NODE_TIMEOUT)


def _where(state: ActorState | None) -> str:
    if state is None or not state.pid:
        return ""
    return f" (pid {state.pid} on node {state.node_address})"
