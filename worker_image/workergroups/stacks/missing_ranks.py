"""Name the ranks that are missing in a collective, from what torch's flight recorders say. A pure function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from workergroups.stacks.flight_recorder import Flight, Joined
from workergroups_common.ranges import ranges


@dataclass(frozen=True)
class MissingRanks:
    """Ranks that others wait for in a collective."""

    ranks: tuple[int, ...]
    process_group: str
    collective: int
    """The number of the collective in its process group, from 1."""
    name: str
    """What the collective is, such as ``gloo:all_reduce``."""
    called: str = ""
    """What the ranks have called instead; empty if they have called nothing."""

    def __str__(self) -> str:
        """Return a sentence for people."""
        one = len(self.ranks) == 1
        who = f"{'rank' if one else 'ranks'} {ranges(self.ranks)}"
        _, _, group = self.process_group.partition(":")
        which = f"{self.name}, collective {self.collective} of process group {group or self.process_group}"
        did = f"called {self.called} instead of" if self.called else f"{'has' if one else 'have'} not joined"
        return f"suspect: {who}, by torch's flight recorder: {'it' if one else 'they'} {did} {which}"


def missing_ranks(flights: Mapping[int, Flight | None]) -> MissingRanks | None:
    """Return who is missing; ``None`` if the recorders do not show that.

    A rank that is missing in one collective may itself wait in another. So ranks that wait nowhere are named first.

    Args:
        flights: What the recorder of each rank says; ``None`` for a rank that has not answered.
    """
    known = {rank: flight for rank, flight in flights.items() if flight is not None}
    if not known:
        return None
    found = [each for group in _process_groups(known) for each in _missing_in(group, flights, known)]
    waiting = {rank for rank, flight in known.items() if any(_waits(joined) for joined in flight.joined.values())}
    return min(found, key=lambda each: (not waiting.isdisjoint(each.ranks), len(each.ranks)), default=None)


def _process_groups(known: Mapping[int, Flight]) -> list[str]:
    return list(dict.fromkeys(name for flight in known.values() for name in flight.joined))


def _missing_in(group: str, flights: Mapping[int, Flight | None], known: Mapping[int, Flight]) -> list[MissingRanks]:
    """Return who is missing in the last collective of a process group, or has called another one; at most one."""
    joined = {rank: flight.joined[group] for rank, flight in known.items() if group in flight.joined}
    if not any(map(_waits, joined.values())):
        return []
    last = max(each.last for each in joined.values())
    names = Counter(each.name for each in joined.values() if each.last == last)
    name = names.most_common(1)[0][0]
    behind = {rank: joined[rank].last if rank in joined else 0 for rank in _members(joined, flights) if rank in known}
    fewest = min(behind.values(), default=last)
    if fewest < last:
        late = tuple(sorted(rank for rank, number in behind.items() if number == fewest))
        next_name = next((each.name for each in joined.values() if each.last == fewest + 1), name)
        return [MissingRanks(late, group, fewest + 1, next_name)]
    silent = tuple(sorted(rank for rank in _members(joined, flights) if rank not in known))
    if silent:
        return [MissingRanks(silent, group, last, name)]
    if len(names) > 1:
        others = tuple(sorted(rank for rank, each in joined.items() if each.name != name))
        return [MissingRanks(others, group, last, name, called=joined[others[0]].name)]
    return []


def _members(joined: Mapping[int, Joined], flights: Mapping[int, Flight | None]) -> set[int]:
    """Return the group's ranks that are members of the process group.

    Torch may number ranks differently than the group does. The number of a rank that has not answered is its own.
    """
    members = {number for each in joined.values() for number in each.members}
    by_torch = {rank if flight is None else flight.rank: rank for rank, flight in flights.items()}
    return {by_torch[number] for number in members if number in by_torch} | set(joined)


def _waits(joined: Joined) -> bool:
    return joined.completed < joined.last
