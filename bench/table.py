"""Write the results as a Markdown table into the docs."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from .contenders import NAMES
from .page import put
from .points import Point


def publish(points: Sequence[Point], page: Path) -> None:
    """Replace the table in the page with that of a complete run.

    Raises:
        ValueError: The page has no lines between which the table belongs.
    """
    put(page, "measured", f"{environment()}\n\n{markdown(points)}")


def environment() -> str:
    """Return where and when it was measured, and of which versions."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("workergroups", "verl", "ray", "torch", "numpy"))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"Measured on {datetime.now(UTC):%Y-%m-%d}: {os.cpu_count()} cores, {memory:.0f} GiB, "
        f"Python {platform.python_version()}, {versions}."
    )


def markdown(points: Sequence[Point]) -> str:
    """Return one line for each comparison and size, with one column for each contender."""
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
