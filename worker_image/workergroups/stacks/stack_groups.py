"""Group ranks whose stacks are alike, and name the ranks that the others seem to wait for.

The command line and the agent use this. It is a pure function: `diagnose`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace

from workergroups.stacks.rank_stack import Doing, Frame, RankStack
from workergroups_common.ranges import ranges

_SHOWN_BLOCKS = 4
_DECORATORS = ("/torch/distributed/c10d_logger.py",)
"""Files of ``torch.distributed`` whose functions only wrap others."""


@dataclass(frozen=True)
class Block:
    """Ranks that do the same."""

    ranks: tuple[int, ...]
    stack: RankStack
    """Of the first of these ranks."""
    is_suspect: bool = False
    """Whether the other ranks seem to wait for these."""
    caller: Frame | None = None
    """If other blocks are at the same place: the innermost caller by which this block differs from them."""

    @property
    def collective(self) -> str | None:
        """The function of ``torch.distributed`` in which the ranks wait, if they do."""
        return _collective(self.stack.frames)

    @property
    def where(self) -> str:
        """Where the ranks are, for people."""
        stack = self.stack
        if stack.doing is Doing.NOTHING:
            return "in no method"
        if stack.doing is Doing.ASYNC:
            return "in an event loop"
        if stack.doing is Doing.UNKNOWN:
            return f"without stacks ({stack.note})"
        if not stack.frames:
            return "at the start of a method"
        place = str(_place(stack)) if self.caller is None else f"{_place(stack)}, called from {self.caller}"
        return f"in torch.distributed.{self.collective} ({place})" if self.collective else f"in {place}"

    @property
    def who(self) -> str:
        """The ranks, for people, such as ``ranks 0-2``."""
        return f"{'rank' if len(self.ranks) == 1 else 'ranks'} {ranges(self.ranks)}"


@dataclass(frozen=True)
class Diagnosis:
    """The ranks by what they do, the suspects first, then the largest block."""

    blocks: tuple[Block, ...]

    @property
    def suspects(self) -> tuple[int, ...]:
        """The ranks that the others seem to wait for."""
        return tuple(sorted(rank for block in self.blocks if block.is_suspect for rank in block.ranks))

    @property
    def places(self) -> str:
        """Where the ranks are, for people, without a word about suspects."""
        return "; ".join(_first([_sentence(block) for block in self.blocks])) or "no rank runs"

    def __str__(self) -> str:
        """Return one line for people."""
        told = _first([_sentence(block) for block in self.blocks if not block.is_suspect])
        suspects = _first([f"{block.who} {block.where}" for block in self.blocks if block.is_suspect])
        if not self.blocks:
            return "no rank runs"
        if suspects:
            return "; ".join([*told, f"suspect: {', '.join(suspects)}"])
        if len(self.blocks) > 1:
            return "; ".join([*told, "no rank is suspect, since no place has most of the ranks"])
        only = self.blocks[0]
        if len(only.ranks) == 1 or only.stack.doing is Doing.UNKNOWN:
            return told[0]
        return f"{told[0]}; no rank is suspect, since all stacks are alike"


def diagnose(stacks: Mapping[int, RankStack]) -> Diagnosis:
    """Group the ranks, and name suspects.

    A rank without stacks is suspect, unless none has any. If some ranks wait in ``torch.distributed``, they wait for
    those that do not. Otherwise, ranks wait for the same thing if most of them are at the same place, and those
    elsewhere are the suspects. Without such a place, those are that still run, if others do not. The same place is the
    same function with the same callers; if all ranks are there, it is the same line.
    """
    blocks = _blocks(stacks, exact=False)
    if len(blocks) == 1:
        blocks = _blocks(stacks, exact=True)
    suspects = _suspects(blocks)
    marked = [replace(block, is_suspect=block in suspects, caller=_own_caller(block, blocks)) for block in blocks]
    return Diagnosis(tuple(sorted(marked, key=lambda block: (not block.is_suspect, -len(block.ranks), block.ranks))))


def _blocks(stacks: Mapping[int, RankStack], *, exact: bool) -> list[Block]:
    alike: dict[Hashable, list[int]] = defaultdict(list)
    for rank, stack in sorted(stacks.items()):
        alike[_likeness(stack, exact)].append(rank)
    return [Block(tuple(ranks), stacks[ranks[0]]) for ranks in alike.values()]


def _own_caller(block: Block, blocks: list[Block]) -> Frame | None:
    """Return the innermost caller that no other block at the same place has; ``None`` if no other is there."""
    others = [other for other in blocks if other is not block and _place(other.stack) == _place(block.stack)]
    shared = {frame for other in others for frame in other.stack.frames}
    own = (frame for frame in block.stack.frames if not frame.is_library and frame not in shared)
    return next(own, None) if others else None


def _place(stack: RankStack) -> Frame | None:
    """Return the innermost frame that is not a library's; if there is none, the innermost one."""
    return next((frame for frame in stack.frames if not frame.is_library), next(iter(stack.frames), None))


def _suspects(blocks: list[Block]) -> list[Block]:
    silent = [block for block in blocks if block.stack.doing is Doing.UNKNOWN]
    others = [block for block in blocks if block not in silent]
    return [*silent, *_apart(others)] if others else []


def _apart(blocks: list[Block]) -> list[Block]:
    """Return the blocks for which the others seem to wait, of those whose stacks are known."""
    elsewhere = [block for block in blocks if not block.collective]
    if 0 < len(elsewhere) < len(blocks):
        return elsewhere
    total = sum(len(block.ranks) for block in blocks)
    most = [block for block in blocks if 2 * len(block.ranks) > total]
    idle = [block for block in blocks if block.stack.doing is Doing.NOTHING]
    awaited_by = most or idle
    return [block for block in blocks if block not in awaited_by] if awaited_by else []


def _likeness(stack: RankStack, exact: bool) -> Hashable:
    """Return what stacks have in common that are alike.

    Lines count only in what the user wrote: a rank that waits in a library may be at any line there. The line at which
    the innermost function is counts only if ``exact``: it may be a loop that waits.
    """
    own = [(frame.file, frame.line, frame.function) for frame in stack.frames if not frame.is_library]
    if own and not exact:
        file, _, function = own[0]
        own[0] = (file, 0, function)
    return stack.doing, tuple(own), _collective(stack.frames)


def _collective(frames: Iterable[Frame]) -> str | None:
    found = None
    for frame in frames:
        if not frame.is_collective:
            break
        if not frame.file.endswith(_DECORATORS):
            found = frame.function
    return found


def _sentence(block: Block) -> str:
    one = len(block.ranks) == 1
    if block.collective:
        return f"{block.who} {'waits' if one else 'wait'} {block.where}"
    return f"{block.who} {'is' if one else 'are'} {block.where}"


def _first(sentences: list[str]) -> list[str]:
    more = len(sentences) - _SHOWN_BLOCKS
    return sentences if more <= 0 else [*sentences[:_SHOWN_BLOCKS], f"and {more} more"]
