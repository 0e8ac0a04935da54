"""The results as a Markdown table, and its place in the docs."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from .contenders import NAMES
from .points import Point

BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"
"""Between them, the docs hold what the last complete run measured."""


def publish(points: Sequence[Point], page: Path) -> None:
    """Put the table of a complete run in place of the one before.

    Raises:
        ValueError: The page has no place for it.
    """
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(
            f"{page} must hold the lines {BEGIN.strip()!r} and {END.strip()!r}: the table goes between them"
        )
    page.write_text(f"{before}{BEGIN}\n{environment()}\n\n{markdown(points)}\n{END}{after}")


def environment() -> str:
    """Where and when, and of which versions."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("workergroups", "verl", "ray", "torch", "numpy"))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"Measured on {datetime.now(UTC):%Y-%m-%d}: {os.cpu_count()} cores, {memory:.0f} GiB, "
        f"Python {platform.python_version()}, {versions}."
    )


def markdown(points: Sequence[Point]) -> str:
    """One line per comparison and size, one column per contender."""
    lines = [
        f"| comparison | ranks | payload | {' | '.join(NAMES.values())} | target |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    rows: dict[tuple[str, int, int | None], dict[str, Point]] = {}
    for point in points:
        rows.setdefault((point.comparison, point.ranks, point.payload_mib), {})[point.contender] = point
    for (comparison, ranks, payload), found in rows.items():
        cells = [str(found[name]) if name in found else "-" for name in NAMES]
        lines.append(
            f"| {comparison} | {ranks} | {'' if payload is None else f'{payload} MiB'} | {' | '.join(cells)} "
            f"| {_target(found.values())} |"
        )
    return "\n".join(lines) + "\n"


def _target(points: Iterable[Point]) -> str:
    ours = next((point for point in points if point.contender == "ours" and point.target is not None), None)
    return "" if ours is None else f"{ours.target}x: {'missed' if ours.missed else 'met'}"
