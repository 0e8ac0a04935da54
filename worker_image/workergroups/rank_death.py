"""Find out which rank died and why, and whether its group's ranks have been replaced since."""

from __future__ import annotations

from collections.abc import Sequence

from ray.actor import ActorHandle
from ray.exceptions import ActorDiedError, RayActorError

from . import incarnations
from .crash_report import crash_report
from .errors import IncarnationReplacedError, RankDiedError
from .exception_text import exception_line
from .naming import RankName
from .node_tasks import run_on_nodes
from .ray_private.actors import actor_id, failed_in_constructor
from .ray_private.cluster_state import ActorState, actor_state

_NODE_TIMEOUT = 10.0
"""Seconds that a node has to say more about a death than Ray does."""


def rank_died(error: RayActorError, workers: Sequence[ActorHandle]) -> RayActorError:
    """Return the error to raise instead of Ray's, which does not know ranks.

    Return Ray's error itself if the actor does not belong to the group, or may be alive.
    """
    ids = [actor_id(worker) for worker in workers]
    state = actor_state(error.actor_id) if error.actor_id else None
    replaced = _replaced(error, state)
    if replaced is not None:
        return replaced
    if error.actor_id not in ids or not isinstance(error, ActorDiedError):
        return error
    rank = ids.index(error.actor_id)
    # The error can be here before the GCS has heard of the death.
    cause = _cause(state) or str(error)
    where = _where(state)
    if failed_in_constructor(error):
        message = f"rank {rank} of {len(ids)}{where} failed in its constructor: {exception_line(cause)}\n{cause}"
    else:
        message = "\n".join([f"rank {rank} of {len(ids)}{where} died: {cause}", *_left_behind(state)])
    return RankDiedError(rank, error.actor_id, message, cause)


def of_any_group(error: RayActorError) -> RayActorError:
    """Return the error to raise where the group is unknown: it reports replaced ranks of any WorkerGroup."""
    return rank_died(error, [])


def _replaced(error: RayActorError, state: ActorState | None) -> IncarnationReplacedError | None:
    """Return the error if the actor was a rank of an incarnation that has been replaced, else ``None``."""
    name = RankName.parse(state.name) if state is not None else None
    current = incarnations.current(name.group) if name is not None else None
    if name is None or current is None:
        return None
    if current.uid != name.uid:
        what = f"the WorkerGroup {name.group!r} was deleted and recreated: this group's ranks were the former one's"
    elif current.incarnation > name.incarnation:
        what = f"the ranks of WorkerGroup {name.group!r} were replaced by new ones: this group's ranks were"
    else:
        return None
    message = (
        f"{what} incarnation {name.incarnation}, and incarnation {current.incarnation} is current. What they had in "
        f"memory is gone. For the new ranks, call workergroups.attach({name.group!r}, newer_than={name.incarnation})"
    )
    return IncarnationReplacedError(
        name.rank,
        error.actor_id,
        message,
        _cause(state) or str(error),
        group=name.group,
        incarnation=name.incarnation,
        current=current.incarnation,
    )


def _cause(state: ActorState | None) -> str:
    return state.death.details if state is not None and state.death is not None else ""


def _left_behind(state: ActorState | None) -> list[str]:
    """Return what the node knows of the death, and Ray does not: crashes, and kills for memory."""
    if state is None or not state.pid:
        return []
    return run_on_nodes(crash_report, [state.node_id], state.pid, timeout=_NODE_TIMEOUT)


def _where(state: ActorState | None) -> str:
    if state is None or not state.pid:
        return ""
    return f" (pid {state.pid} on node {state.node_address})"
