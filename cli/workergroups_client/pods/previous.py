"""The last lines of ranks that died: the agent keeps them, and a program in the agent's pod returns them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from workergroups_api.vocabulary import RankEnd

from ..api_server.cluster import Cluster
from ..errors import NotFoundError
from ..objects.names import Target
from ..objects.reading import group_status, read
from ..rank_ranges import numbers
from .pod_programs import ask
from .pods import agent

if TYPE_CHECKING:
    from workergroups_api.report import DeadRank

_MODULE = "workergroups_agent.previous_logs"


@dataclass(frozen=True)
class PreviousLog:
    """A rank that died, and its last lines."""

    dead_rank: DeadRank
    lines: tuple[bytes, ...]


def previous_logs(cluster: Cluster, group: Target, wanted: str | None) -> list[PreviousLog]:
    """Return the kept logs of the latest incarnation that has any: the first death first, ranks that were ended last.

    Args:
        cluster: Where the group is.
        group: The group.
        wanted: Ranks such as ``0-3,7``; ``None`` for all.

    Raises:
        NotFoundError: No lines are kept; the message gives the reason.
    """

    def ask_agent(*words: str) -> Any:
        return ask(cluster, where, _MODULE, group.uid, *words, what=f"{group} could not be asked for its last lines")

    where = agent(cluster, group)
    answer = ask_agent()
    dead = _as_in_status(group, [dead_rank(group, each) for each in answer["dead"]])
    if not dead:
        raise NotFoundError(_why_none(group, answer["since"]))
    chosen = _latest(group, dead, wanted)
    texts = ask_agent(str(chosen[0].incarnation), *(str(each.rank) for each in chosen))
    return [PreviousLog(each, _lines(text)) for each, text in zip(chosen, texts, strict=True)]


def dead_rank(group: Target, answer: Any) -> DeadRank:
    """Return a dead rank of a group from what the group's agent answers.

    Raises:
        ClientError: The answer has a value that this version cannot read.
    """
    # As in `reading`: pydantic, which this needs, takes a noticeable time.
    from workergroups_api.report import DeadRank

    return read(DeadRank, group, "the agent's record of a dead rank", answer)


def _as_in_status(group: Target, dead: Sequence[DeadRank]) -> list[DeadRank]:
    """Return dead ranks with the reasons in the group's status: the operator knows more, such as of their pods."""
    kept = {
        (each.incarnation, each.rank, each.birth): {"reason": each.reason, "message": each.message}
        for each in reversed(group_status(group).failures)  # the latest counts
    }
    return [each.model_copy(update=kept.get((each.incarnation, each.rank, each.birth), {})) for each in dead]


def _why_none(group: Target, since: str | None) -> str:
    if since is None:
        return f"the agent of {group} is not connected to Ray: workergroups status {group.name} says why"
    return (
        f"no rank of {group} has died since {since}, when its agent began to listen; the lines of ranks that died "
        f"before that are lost. For ranks that run: workergroups logs {group.name}"
    )


def _latest(group: Target, dead: Sequence[DeadRank], wanted: str | None) -> list[DeadRank]:
    ranks = None if wanted is None else numbers(wanted)
    chosen = [each for each in dead if ranks is None or each.rank in ranks]
    if not chosen:
        there = ", ".join(f"{each.rank} (incarnation {each.incarnation})" for each in dead)
        raise NotFoundError(
            f"the agent of {group} keeps no lines of rank {wanted}: choose from the ranks whose lines it keeps, {there}"
        )
    latest = max(each.incarnation for each in chosen)
    return sorted((each for each in chosen if each.incarnation == latest), key=_order)


def _order(dead: DeadRank) -> tuple[bool, datetime, int]:
    """Return what puts a cause before what follows from it."""
    return dead.reason == RankEnd.REMOVED, dead.died, dead.rank


def _lines(text: str) -> tuple[bytes, ...]:
    lines = text.encode().split(b"\n")
    return tuple(lines[:-1] if not lines[-1] else lines)
