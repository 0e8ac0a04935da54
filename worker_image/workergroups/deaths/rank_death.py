"""Find out which rank died and why, and whether its group's ranks have been replaced since."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import ray
from ray.actor import ActorHandle
from ray.exceptions import ActorDiedError, ActorUnavailableError, ObjectLostError, RayActorError, RayError, RayTaskError

from workergroups.announcements import incarnations, told_ends
from workergroups.announcements.incarnations import Incarnation
from workergroups.deaths.crash_report import crash_report
from workergroups.deaths.rank_exception import UNREADABLE, raised
from workergroups.errors import IncarnationReplacedError, RankDiedError
from workergroups.naming import RankName
from workergroups.node import memory_kills
from workergroups.node_tasks import run_on_nodes
from workergroups.ray_private import key_value_store, records
from workergroups.ray_private.actors import actor_id, actor_of, failed_in_constructor
from workergroups.ray_private.cluster_state import ActorState, actor_state
from workergroups.ray_private.death_cause import SILENT_END
from workergroups.ray_private.gcs import Gcs
from workergroups.stacks.exception_text import exception_line
from workergroups.waiting import poll
from workergroups_api.vocabulary import RankEnd

_NODE_TIMEOUT = 10.0
"""Seconds that a node has to say more about a death than Ray does."""
_SAME_CALL = 3.0
"""Seconds within which the driver hears of a rank's death after the other ranks' exceptions about it."""
_REPORTED = 5.0
"""Seconds within which the GCS knows of a death that Ray has reported to this process."""
_UNREACHABLE = 30.0
"""Seconds within which the GCS knows whether an unreachable rank is dead. Its node's loss takes half of it."""


CALL_ERRORS = (RayTaskError, RayActorError, ObjectLostError, UNREADABLE)
"""What Ray raises if a method raised, if its rank died, if its result was lost, and if this process cannot read why."""


def raise_error_of_call(
    error: RayError, refs: Sequence[Any], workers: Sequence[ActorHandle] = (), group: str = ""
) -> NoReturn:
    """Raise what `error_of_call` returns, such that nothing of the call stays when it has been handled.

    A traceback keeps the variables of its functions, such as the references of the call, for which ranks keep results.
    If the error is one of these variables, all of this stays until the garbage collector finds it. In Ray's own
    functions, it is, so the traceback begins here.
    """
    named = error_of_call(error, refs, workers, group)
    error.__traceback__ = None
    try:
        if named is error:
            raise error
        raise named from error
    finally:
        del named, error


def error_of_call(
    error: RayError, refs: Sequence[Any], workers: Sequence[ActorHandle] = (), group: str = ""
) -> Exception:
    """Return the error to raise for a call that failed.

    It is a `RankDiedError` if a rank died, and else the error itself, which becomes a `RankRaisedError` as well if a
    rank raised it.

    Args:
        error: What Ray raised: one of `CALL_ERRORS`.
        refs: The call's references.
        workers: The ranks that were called, in rank order. Without them, only ranks of WorkerGroups are recognized.
        group: Their group's name.
    """
    unnamed: Exception = error
    if isinstance(error, RayTaskError):
        if isinstance(error.cause, RayActorError):
            # What the method raised, or why Ray could not give it its arguments: other ranks were computing them.
            death, workers = error.cause, ()
        else:
            # In a collective, the ranks that a dead one leaves behind raise before Ray reports the death.
            death = _death_among(refs)
    elif isinstance(error, RayActorError):
        return _named(error, workers, group)
    else:
        death = _dead_rank_of(refs, error)
    named = _named(death, workers, group) if death is not None else unnamed
    return named if isinstance(named, RankDiedError) else raised(error)


@dataclass(frozen=True)
class _Rank:
    number: int
    size: int
    """The number of ranks in its group."""
    group: str
    incarnation: int | None
    """``None`` if the group is no WorkerGroup's."""


def _named(error: RayActorError, workers: Sequence[ActorHandle], group: str) -> Exception:
    """Return the error to raise instead of Ray's, which does not know ranks.

    Return Ray's error itself if the actor is not a rank, and one of the same class, with the rank's name, if the rank
    does not answer, and may be alive.
    """
    unnamed: Exception = error
    state = actor_state(error.actor_id) if error.actor_id else None
    name = RankName.parse(state.name) if state is not None else None
    ids = [actor_id(worker) for worker in workers]
    if name is not None:
        rank = _Rank(name.rank, name.world_size, name.group, name.incarnation)
    elif error.actor_id in ids:
        rank = _Rank(ids.index(error.actor_id), len(ids), group, None)
    else:
        return unnamed
    state = _settled_state(error, name) or state
    if name is not None and (current := _newer(name)) is not None:
        return _replaced(error, name, current, state)
    if not isinstance(error, ActorDiedError) and (state is None or state.death is None):
        return _unavailable(error, rank, state) if isinstance(error, ActorUnavailableError) else unnamed
    return _rank_died(error, rank, state, _why_recreated(name))


def _death_among(refs: Sequence[Any]) -> RayActorError | None:
    """Return the first of a call's errors that says that an actor is dead or out of reach."""
    deadline = time.monotonic() + _SAME_CALL
    pending = list(dict.fromkeys(refs))
    while pending:
        ready, pending = ray.wait(pending, timeout=max(0.0, deadline - time.monotonic()))
        if not ready:
            return None
        try:
            ray.get(ready)
        except RayError as error:
            error.__traceback__ = None  # see `raise_error_of_call`
            if isinstance(error, RayActorError) and not isinstance(error, RayTaskError):
                return error
    return None


def _dead_rank_of(refs: Sequence[Any], error: RayError) -> RayActorError | None:
    """Return an error for the first of the call's ranks that is dead."""
    for actor in dict.fromkeys(map(actor_of, refs)):
        state = actor_state(actor)
        if state is not None and state.death is not None:
            return RayActorError(actor, str(error))
    return None


def _settled_state(error: RayActorError, name: RankName | None) -> ActorState | None:
    """Return the actor's state once the GCS knows of its death or its replacement; ``None`` if it does not in time.

    Then the error has its reason, and `renew` does not take the rank for a live one.
    """

    def settled() -> ActorState | None:
        state = actor_state(error.actor_id)
        is_settled = state is not None and (state.death is not None or (name is not None and _newer(name) is not None))
        return state if is_settled else None

    return poll(settled, timeout=_REPORTED if isinstance(error, ActorDiedError) else _UNREACHABLE)


def _why_recreated(name: RankName | None) -> str:
    """Return which rank failed and how if this one is recreated alone; else an empty text."""
    current = incarnations.current(name.group) if name is not None else None
    if name is None or current is None or current.births.get(name.rank, 0) <= name.birth:
        return ""
    return current.cause


def _rank_died(error: RayActorError, rank: _Rank, state: ActorState | None, why: str) -> RankDiedError:
    cause, reason = _cause(state) or str(error), _reason(error, state)
    who = _who(rank, state)
    if reason is RankEnd.CONSTRUCTOR_FAILED:
        lines = [f"{who} failed in its constructor: {exception_line(cause)}", cause]
    else:
        brief = state.death.message if state is not None and state.death is not None else cause
        brief = _told(error.actor_id) if brief == SILENT_END and reason is RankEnd.PROCESS_DIED else brief
        lines = [f"{who} died: {brief}", *filter(None, [why, *_left_behind(state)])]
    return RankDiedError(
        "\n".join([*lines, _what_next(rank)]),
        rank=rank.number,
        group=rank.group,
        incarnation=rank.incarnation,
        actor_id=error.actor_id,
        reason=reason,
        cause=cause,
    )


def _unavailable(error: RayActorError, rank: _Rank, state: ActorState | None) -> ActorUnavailableError:
    who = _who(rank, state)
    what_next = _what_next(rank)
    if rank.incarnation is not None:
        what_next = (
            f"`workergroups stacks {rank.group}` shows whether the process is stopped, and `workergroups restart "
            f"{rank.group}` replaces the ranks"
        )
    message = f"{who} does not answer, and is not dead: its process is stopped, or its node is frozen or cut off"
    return ActorUnavailableError(f"{message}. {what_next}", bytes.fromhex(error.actor_id))


def _newer(name: RankName) -> Incarnation | None:
    """Return the current incarnation if it is another than this rank's, which has been replaced then."""
    current = incarnations.current(name.group)
    if current is None or (current.uid == name.uid and current.incarnation <= name.incarnation):
        return None
    return current


def _replaced(
    error: RayActorError, name: RankName, current: Incarnation, state: ActorState | None
) -> IncarnationReplacedError:
    if current.uid != name.uid:
        what = f"the WorkerGroup {name.group!r} was deleted and recreated: this group's ranks were the former one's"
    else:
        what = f"the ranks of WorkerGroup {name.group!r} were replaced by new ones: this group's ranks were"
    since = f", since {current.cause}" if current.cause else ""
    message = (
        f"{what} incarnation {name.incarnation}, and incarnation {current.incarnation} is current{since}. What they "
        "had in memory is gone. group.renew() waits for the new ranks"
    )
    return IncarnationReplacedError(
        message,
        rank=name.rank,
        group=name.group,
        incarnation=name.incarnation,
        current=current.incarnation,
        actor_id=error.actor_id,
        reason=_reason(error, state),
        cause=current.cause or _cause(state) or str(error),
    )


def _what_next(rank: _Rank) -> str:
    if rank.incarnation is None:
        return "Ranks of a group that a program created are not replaced: close the group, and create it again"
    return "group.renew() waits for the ranks that replace dead ones. They have nothing of what those had in memory"


def _cause(state: ActorState | None) -> str:
    return state.death.details if state is not None and state.death is not None else ""


def _reason(error: RayActorError, state: ActorState | None) -> RankEnd:
    if state is not None and state.death is not None:
        is_silent = state.death.message == SILENT_END
        return RankEnd.OUT_OF_MEMORY if is_silent and _is_memory_short(error.actor_id) else state.death.reason
    return RankEnd.CONSTRUCTOR_FAILED if failed_in_constructor(error) else RankEnd.PROCESS_DIED


def _told(actor_id: str) -> str:
    """Return what the rank told before it ended, or that it told nothing."""
    try:
        return told_ends.read(key_value_store.get(told_ends.KV_NAMESPACE, actor_id)) or SILENT_END
    except Exception:  # Whatever the GCS answers or does not answer, the rank is dead.
        return SILENT_END


def _is_memory_short(actor_id: str) -> bool:
    """Return whether the kernel ended a process of the rank's pod for lack of memory when the rank ended."""
    try:
        gcs = Gcs.of_driver()
        rank = records.actor(gcs.actor(actor_id) or b"")
        pod = next(node.pod for node in map(records.node, gcs.nodes()) if node.id == rank.node_id)
        times = memory_kills.read(gcs.get(memory_kills.KV_NAMESPACE, pod))
        ended = gcs.worker_end(rank.worker_id) if times else None
    except Exception:  # Whatever the GCS answers or does not answer, the rank is dead.
        return False
    return ended is not None and memory_kills.explain(times, ended)


def _left_behind(state: ActorState | None) -> list[str]:
    """Return what the node knows of the death, and Ray does not: crashes, and kills for memory."""
    if state is None or not state.pid:
        return []
    return run_on_nodes(crash_report, [state.node_id], state.pid, timeout=_NODE_TIMEOUT)


def _who(rank: _Rank, state: ActorState | None) -> str:
    return f"rank {rank.number} of {rank.size}{_where(rank, state)}"


def _where(rank: _Rank, state: ActorState | None) -> str:
    process = [f"pid {state.pid} on node {state.node_address}"] if state is not None and state.pid else []
    if rank.incarnation is None:
        return f" ({process[0]})" if process else ""
    return f" of WorkerGroup {rank.group!r} ({', '.join([f'incarnation {rank.incarnation}', *process])})"
