"""What the ranks of a group do, with those together that do the same, and the suspects first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workergroups.stacks.rank_stack import Doing, parse
from workergroups.stacks.stack_groups import Block, diagnose
from workergroups_common.ranges import ranges


@dataclass(frozen=True)
class StackGroup:
    """Ranks whose stacks are alike."""

    ranks: str
    """As ranges, such as ``0-2,5``."""
    suspect: bool
    """Whether the other ranks seem to wait for these."""
    where: str
    first: int
    """The first of these ranks, whose stack stands for all."""

    @property
    def who(self) -> str:
        """The ranks, for people."""
        return f"rank {self.ranks}" if self.ranks.isdigit() else f"ranks {self.ranks}"


@dataclass(frozen=True)
class CallGroup:
    """Ranks that have the same call in flight, and are at the same place."""

    ranks: str
    """As ranges, such as ``0-2,5``."""
    method: str
    state: str
    seconds: float
    """For how long the call has been in that state on the first of these ranks to enter it."""
    job_id: str
    suspect: bool
    where: str
    """Empty for a call that does not run."""


@dataclass(frozen=True)
class GroupActivity:
    """The calls in flight, and the stacks of all ranks."""

    calls: Sequence[Mapping[str, Any]]
    stacks: Mapping[int, str]

    @property
    def groups(self) -> list[CallGroup]:
        """The calls, each once for all ranks that are at the same place: suspects first, and queued calls last."""
        blocks = {rank: block for block in _blocks(self.stacks) for rank in block.ranks}
        alike = defaultdict(list)
        for call in self.calls:
            block = blocks.get(call["rank"]) if call["state"].startswith("running") else None
            alike[call["method"], call["state"], call["job_id"], block].append(call)
        found = [
            CallGroup(
                ranks=ranges(call["rank"] for call in calls),
                method=method,
                state=state,
                seconds=max(call["seconds"] for call in calls),
                job_id=job_id,
                suspect=block is not None and block.is_suspect,
                where=block.where if block is not None else "",
            )
            for (method, state, job_id, block), calls in alike.items()
        ]
        return sorted(found, key=lambda group: (not group.suspect, not group.state.startswith("running")))


def stack_groups(stacks: Mapping[int, str]) -> list[StackGroup]:
    """Return the ranks by what they do, from their stacks."""
    return [StackGroup(ranges(block.ranks), block.is_suspect, block.where, block.ranks[0]) for block in _blocks(stacks)]


def silent_ranks(stacks: Mapping[int, str]) -> str:
    """Return the ranks that have no stacks, since they do not answer, as ranges; empty if all answer."""
    return ranges(rank for rank, text in stacks.items() if parse(text).doing is Doing.UNKNOWN)


def _blocks(stacks: Mapping[int, str]) -> tuple[Block, ...]:
    return diagnose({rank: parse(text) for rank, text in stacks.items()}).blocks
