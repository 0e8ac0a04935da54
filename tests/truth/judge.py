"""Conclude from what was observed for how long the status was wrong. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .watch import Seen

TRUE = "True"


@dataclass(frozen=True)
class Verdict:
    """The result of one fault in one round."""

    seconds: float | None
    """For how long the status was wrong; None if it never reported the fault."""
    wrong: tuple[str, ...] = ()
    """What was observed that must not happen."""


def first_denial(history: Iterable[Seen]) -> Seen | None:
    """Return the first observation in which Ready was not True."""
    return next((seen for seen in history if seen.status != TRUE), None)


def untruth(histories: Iterable[Sequence[Seen]], struck: float) -> float | None:
    """Return the seconds from the fault until each of the objects reported it; None if one never did."""
    denials = [first_denial(history) for history in histories]
    moments = [denial.at for denial in denials if denial is not None]
    if len(moments) < len(denials):
        return None
    return max(0.0, *(moment - struck for moment in moments))


def relapses(history: Sequence[Seen], ended: str) -> list[Seen]:
    """Return the observations in which Ready was True again in the life that the fault had ended."""
    denial = first_denial(history)
    if denial is None:
        return []
    return [seen for seen in history if seen.at > denial.at and seen.status == TRUE and seen.life == ended]


def seconds_not_true(history: Sequence[Seen], until: float) -> float:
    """Return for how many seconds Ready was not True."""
    ends = [*(seen.at for seen in history[1:]), until]
    return sum(end - seen.at for seen, end in zip(history, ends, strict=False) if seen.status != TRUE)
