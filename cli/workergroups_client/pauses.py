"""Ranks that are paused for a debugger, as their group's status says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from workergroups_api.vocabulary import PAUSED, ConditionType

from .names import Target
from .times import moment


@dataclass(frozen=True)
class Pause:
    """A rank that waits for a debugger, or has one."""

    rank: int
    where: str
    """File, line and function, and the exception that was raised there, if any."""
    since: datetime
    """By the clock of the rank's node."""
    is_attached: bool
    """Whether somebody is connected already."""
    pod: str | None
    directory: str | None
    """On the rank, the root of the code that the file belongs to."""
    port: int | None
    """Where debugpy listens in the pod; ``None`` until it does, a second or two after the pause began."""

    @property
    def key(self) -> tuple[int, datetime]:
        """What tells it from all other pauses of its group."""
        return self.rank, self.since


def pauses_of(group: Target) -> list[Pause]:
    """Of the present incarnation, by rank; the first 64, where there are more.

    What the agent has said counts while the operator says it, too: of a Ray that is lost, it stands there for a while.
    """
    status = group.manifest.get("status") or {}
    ranks = reported_ranks(status)
    reasons = {each["type"]: each["reason"] for each in status.get("conditions") or []}
    deaths = {failure["reason"] for failure in ranks.get("failures") or []}
    if reasons.get(ConditionType.RANKS_READY) not in {*PAUSED, *deaths}:
        return []
    return sorted(map(_pause, ranks.get("pauses") or []), key=lambda pause: pause.rank)


def reported_ranks(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the agent says of a group's ranks; empty if that is of another incarnation than the present one."""
    ranks: Mapping[str, Any] = status.get("ranks") or {}
    return ranks if ranks.get("incarnation") == status.get("incarnation") else {}


def _pause(said: dict[str, Any]) -> Pause:
    return Pause(
        rank=said["rank"],
        where=said["where"],
        since=moment(said["since"]),
        is_attached=said.get("attached", False),
        pod=said.get("pod"),
        directory=said.get("directory"),
        port=said.get("port"),
    )
