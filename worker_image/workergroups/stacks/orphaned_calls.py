"""Calls whose callers have ended. Ranks finish them, but Ray is not told that they have: callers would tell it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from workergroups.stacks.rank_stack import Doing, RankStack

_CALLER_ENDED = ", its caller has ended"


class RunningCall(NamedTuple):
    """A call that has begun, and of which Ray does not know that it has returned."""

    key: str
    process: str
    """Who runs it."""
    seconds: float
    """For how long."""
    state: str


def orphaned(state: str) -> str:
    """Return the state of a call, with the addition that its caller has ended."""
    return state + _CALLER_ENDED


def is_orphaned(state: str) -> bool:
    """Return whether the caller of a call in this state has ended."""
    return state.endswith(_CALLER_ENDED)


def returned(calls: Iterable[RunningCall], stacks: Mapping[str, RankStack]) -> set[str]:
    """Return the keys of the calls that have returned, although Ray lists them.

    A process runs as many calls as its threads are in methods: those whose callers live, and else the latest. Of a
    process without stacks, or with an event loop, that is unknown.

    Args:
        calls: All calls that have begun.
        stacks: What processes do, by what the calls name them.
    """
    of_each: dict[str, list[RunningCall]] = defaultdict(list)
    for call in calls:
        of_each[call.process].append(call)
    found: set[str] = set()
    for process, own in of_each.items():
        stack = stacks.get(process)
        if stack is not None and stack.doing in (Doing.METHOD, Doing.NOTHING):
            orphans = sorted((call for call in own if is_orphaned(call.state)), key=lambda call: call.seconds)
            still_running = max(0, stack.methods - (len(own) - len(orphans)))
            found.update(call.key for call in orphans[still_running:])
    return found
