"""What the terminal showed, moment by moment."""

from collections.abc import Iterable
from dataclasses import dataclass

import pyte

from .terminal import COLUMNS, LINES, Output

SHORTEST_SECONDS = 0.1
LONGEST_SECONDS = 2.0
"""A wait of minutes is shown as one of two seconds."""
AT_THE_END_SECONDS = 5.0


@dataclass(frozen=True)
class Run:
    """Neighbouring characters of one style."""

    column: int
    text: str
    color: str
    is_bold: bool


@dataclass(frozen=True)
class Frame:
    """What was on the screen for some seconds, line by line."""

    seconds: float
    lines: tuple[tuple[Run, ...], ...]


def frames(outputs: Iterable[Output]) -> list[Frame]:
    """Play the outputs on a terminal's screen; outputs at nearly the same time are one frame."""
    screen = pyte.Screen(COLUMNS, LINES)
    stream = pyte.ByteStream(screen)
    shown: list[Frame] = []
    since = 0.0
    for at, data in outputs:
        if at - since >= SHORTEST_SECONDS:
            shown.append(Frame(min(at - since, LONGEST_SECONDS), _lines(screen)))
            since = at
        stream.feed(data)
    return [*shown, Frame(AT_THE_END_SECONDS, _lines(screen))]


def _lines(screen: pyte.Screen) -> tuple[tuple[Run, ...], ...]:
    return tuple(_runs(screen, line) for line in range(LINES))


def _runs(screen: pyte.Screen, line: int) -> tuple[Run, ...]:
    runs: list[Run] = []
    for column in range(COLUMNS):
        character = screen.buffer[line][column]
        if runs and (runs[-1].color, runs[-1].is_bold) == (character.fg, character.bold):
            runs[-1] = Run(runs[-1].column, runs[-1].text + character.data, character.fg, character.bold)
        else:
            runs.append(Run(column, character.data, character.fg, character.bold))
    return tuple(run for run in runs if run.text.strip())
