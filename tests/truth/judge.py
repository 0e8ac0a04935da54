"""From what was seen to seconds and a verdict. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .watch import Seen

TRUE = "True"


@dataclass(frozen=True)
class Verdict:
    """What one fault showed in one round."""

    seconds: float | None
    """Of untruth; None if the status never said what had happened."""
    wrong: tuple[str, ...] = ()
    """What was seen that must not be."""


def first_denial(history: Iterable[Seen]) -> Seen | None:
    """The first time that Ready was not True."""
    return next((seen for seen in history if seen.status != TRUE), None)


def untruth(histories: Iterable[Sequence[Seen]], struck: float) -> float | None:
    """Seconds from the fault until each of the objects said so; None if one never did."""
    denials = [first_denial(history) for history in histories]
    moments = [denial.at for denial in denials if denial is not None]
    if len(moments) < len(denials):
        return None
    return max(0.0, *(moment - struck for moment in moments))


def relapses(history: Sequence[Seen], ended: str) -> list[Seen]:
    """The times at which Ready was True again in the life that the fault had ended."""
    denial = first_denial(history)
    if denial is None:
        return []
    return [seen for seen in history if seen.at > denial.at and seen.status == TRUE and seen.life == ended]


def seconds_not_true(history: Sequence[Seen], until: float) -> float:
    """For how long Ready was not True."""
    ends = [*(seen.at for seen in history[1:]), until]
    return sum(end - seen.at for seen, end in zip(history, ends, strict=False) if seen.status != TRUE)
