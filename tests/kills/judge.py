"""Conclude whether statuses were true, and whether everything that is held has an owner. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.truth.judge import TRUE, relapses, untruth
from tests.truth.watch import GROUPS, POOLS, Seen
from workergroups.naming import PlacementName, RankName

# As `make truth` allows while agent or operator are away; it has tighter bounds for each fault alone.
BOUND_SECONDS = 5.0


@dataclass(frozen=True)
class Kind:
    """What a kill ends, and so what the statuses must and must not say."""

    name: str
    ends: tuple[str, ...] = ()
    """The objects of which something ends: their Ready must not be True again in the same life."""
    may_be_unknown: bool = False
    """Whether nobody knows for a while what is true."""
    is_told: bool = False
    """Whether ranks and driver are told before, so that no step of the training is lost."""


RANK = Kind("rank", ends=(GROUPS,))
POD = Kind("pod", ends=(POOLS, GROUPS))
EVICTION = Kind("eviction", ends=(POOLS, GROUPS), is_told=True)
DRAIN = Kind("drain", ends=(POOLS, GROUPS), is_told=True)
HEAD = Kind("head", may_be_unknown=True)
GCS = Kind("gcs", may_be_unknown=True)
AGENT = Kind("agent", may_be_unknown=True)
OPERATOR = Kind("operator")
DRIVER = Kind("driver")
KINDS = (RANK, POD, EVICTION, DRAIN, HEAD, GCS, AGENT, OPERATOR, DRIVER)


@dataclass(frozen=True)
class Kill:
    """Something that was killed."""

    kind: Kind
    target: str
    began: float
    """Before it was killed, by the clock of the observations."""
    struck: float
    """When it had been killed."""
    lives: Mapping[str, str] = field(default_factory=dict)
    """The life of each object that was Ready before."""


@dataclass(frozen=True)
class Held:
    """What Ray holds: the names of placement groups that are not removed, and those of live actors."""

    placements: tuple[str, ...]
    actors: tuple[str, ...]


def untruths(kills: Sequence[Kill], histories: Mapping[str, Sequence[Seen]]) -> list[str]:
    """Return what was untrue about pool and group while these kills followed each other.

    Args:
        kills: The kills, without a recovery in between. Before the first, pool and group were ready.
        histories: What was observed from the first kill until pool and group were ready again, by plural.
    """
    found = [_relapse(kill, plural, histories[plural]) for kill in kills for plural in kill.kind.ends]
    if len(kills) == 1:
        found += [_late(kills[0], plural, histories[plural]) for plural in kills[0].kind.ends]
        calm = {POOLS, GROUPS} - set(kills[0].kind.ends)
        found += [_false_alarm(kills[0], plural, histories[plural]) for plural in sorted(calm)]
    return [each for each in found if each is not None]


_STEP = re.compile(r"^attempt \d+(?:, incarnation \d+)?(: from| ends after) step (\d+)", re.MULTILINE)


def steps_lost(log: str) -> int:
    """Return how many steps the attempts of a training repeat, by what its driver prints."""
    lost = last = 0
    for begins, step in _STEP.findall(log):
        if begins == ": from":
            lost += max(0, last - int(step))
        last = int(step)
    return lost


def _relapse(kill: Kill, plural: str, history: Iterable[Seen]) -> str | None:
    if plural not in kill.lives:
        return None
    # An Unknown that comes before it is struck is of a kill before, as of the GCS: it denies nothing.
    said = [seen for seen in history if seen.at >= (kill.struck if seen.status == "Unknown" else kill.began)]
    again = relapses(said, kill.lives[plural])
    if not again:
        return None
    return (
        f"{plural}: Ready again {again[0].at - kill.struck:.1f} s after the {kill.kind.name} was killed, in that life"
    )


def _late(kill: Kill, plural: str, history: Sequence[Seen]) -> str | None:
    if plural not in kill.lives:
        return None
    seconds = untruth([history], kill.struck)
    if seconds is not None and seconds <= BOUND_SECONDS:
        return None
    when = "never" if seconds is None else f"only after {seconds:.1f} s"
    return f"{plural}: Ready stayed True, and ceased to be {when}, though the {kill.kind.name} was killed"


def _false_alarm(kill: Kill, plural: str, history: Iterable[Seen]) -> str | None:
    """Return that Ready was not True, although the kill ended nothing of the object."""
    allowed = {TRUE, "Unknown"} if kill.kind.may_be_unknown else {TRUE}
    wrong = next((seen for seen in history if seen.status not in allowed), None)
    if wrong is None or plural not in kill.lives:
        return None
    return f"{plural}: Ready {wrong.status} ({wrong.reason}), though only the {kill.kind.name} was killed"


def unowned(held: Held, pool_uid: str, nodes: int, group_uid: str, incarnation: int, world_size: int) -> list[str]:
    """Return what Ray holds without an owner, or does not hold for one.

    Args:
        held: What Ray holds.
        pool_uid: The UID of the only pool.
        nodes: How many nodes it has: each has one placement group.
        group_uid: The UID of the only group, or of a group that was deleted.
        incarnation: The group's present incarnation.
        world_size: How many ranks must live: none of a deleted group.
    """
    placements = [PlacementName.parse(name) for name in held.placements]
    ranks = [rank for name in held.actors if (rank := RankName.parse(name)) is not None]
    indexes = sorted(each.index for each in placements if each is not None and each.uid == pool_uid)
    wrong = [f"placement group {name}" for name, each in zip(held.placements, placements, strict=True) if each is None]
    wrong += [f"placement group {each} of no pool" for each in placements if each is not None and each.uid != pool_uid]
    if indexes != list(range(nodes)):
        wrong.append(f"placement groups of nodes {indexes} instead of {list(range(nodes))}")
    own = [rank for rank in ranks if (rank.uid, rank.incarnation) == (group_uid, incarnation)]
    wrong += [f"rank {rank} of no group" for rank in ranks if rank not in own]
    numbers = sorted(rank.rank for rank in own)
    if numbers != list(range(world_size)):
        wrong.append(f"ranks {numbers} of incarnation {incarnation} instead of {list(range(world_size))}")
    return wrong
