"""What ranks that died printed last: the agent has kept it, and is asked for it in its pod."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .asking import ask
from .cluster import Cluster
from .errors import NotFoundError
from .names import Target
from .pods import agent
from .ranks import numbers

_MODULE = "workergroups_agent.previous_logs"


@dataclass(frozen=True)
class DeadRank:
    """A rank that died, and its last lines."""

    rank: int
    incarnation: int
    reason: str
    message: str
    pod: str | None
    """Where it was, whether or not that pod is there still."""
    died: datetime
    """By the agent's clock."""
    lines: tuple[bytes, ...]


def dead_ranks(cluster: Cluster, group: Target, wanted: str | None) -> list[DeadRank]:
    """Of the latest incarnation of which there are any, in rank order."""

    def ask_agent(*words: str) -> Any:
        what = f"{group} could not be asked for its last lines"
        return ask(cluster, where, _MODULE, group.manifest["metadata"]["uid"], *words, what=what)

    where = agent(cluster, group)
    answer = ask_agent()
    chosen = _latest(group, answer["since"], answer["dead"], wanted)
    texts = ask_agent(str(chosen[0]["incarnation"]), *(str(dead["rank"]) for dead in chosen))
    return [_with_lines(dead, text) for dead, text in zip(chosen, texts, strict=True)]


def _latest(
    group: Target, since: str | None, dead: Sequence[dict[str, Any]], wanted: str | None
) -> list[dict[str, Any]]:
    if not dead:
        if since is None:
            raise NotFoundError(
                f"the agent of {group} is not connected to Ray: workergroups status {group.name} says why"
            )
        raise NotFoundError(
            f"no rank of {group} has died since {since}, when its agent began to listen; what ranks printed that died "
            f"before is gone. Those that run: workergroups logs {group.name}"
        )
    ranks = None if wanted is None else set(numbers(wanted))
    chosen = [each for each in dead if ranks is None or each["rank"] in ranks]
    if not chosen:
        there = ", ".join(f"{each['rank']} (incarnation {each['incarnation']})" for each in dead)
        raise NotFoundError(f"nothing is kept of rank {wanted} of {group}; it is of ranks {there}")
    latest = max(each["incarnation"] for each in chosen)
    return sorted((each for each in chosen if each["incarnation"] == latest), key=lambda each: int(each["rank"]))


def _with_lines(dead: dict[str, Any], text: str) -> DeadRank:
    lines = text.encode().split(b"\n")
    return DeadRank(
        rank=dead["rank"],
        incarnation=dead["incarnation"],
        reason=dead["reason"],
        message=dead["message"],
        pod=dead["pod"],
        died=datetime.fromisoformat(dead["died"]),
        lines=tuple(lines[:-1] if not lines[-1] else lines),
    )
