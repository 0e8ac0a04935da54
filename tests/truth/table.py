"""Write the seconds for which a status was wrong as a Markdown table into the docs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from bench.page import put

from .faults import Fault, NoFault
from .judge import Verdict

Verdicts = Mapping[str, Sequence[Verdict]]


def holds(fault: Fault | NoFault, verdicts: Sequence[Verdict]) -> bool:
    """Return whether the bound held in all rounds."""
    if any(verdict.wrong or verdict.seconds is None for verdict in verdicts):
        return False
    return isinstance(fault, NoFault) or all((verdict.seconds or 0.0) <= fault.bound for verdict in verdicts)


def markdown(faults: Sequence[Fault | NoFault], verdicts: Verdicts) -> str:
    """Return the tables, with one line for each fault."""
    lines = ["| fault | bound | min | median | max | holds |", "|---|--:|--:|--:|--:|---|"]
    lines += [_line(fault, verdicts.get(fault.name, ())) for fault in faults if isinstance(fault, Fault)]
    lines += ["", "| not a fault | may be Unknown | seconds not True: min | median | max | holds |", lines[1]]
    lines += [_line(fault, verdicts.get(fault.name, ())) for fault in faults if isinstance(fault, NoFault)]
    return "\n".join(lines) + "\n"


def publish(page: Path, busy: str | None, table: str, rounds: int) -> None:
    """Replace the table in the page with that of a complete run.

    Raises:
        ValueError: The page has no lines between which the table belongs.
    """
    put(page, "busy" if busy else "quiet", f"{environment(busy, rounds)}\n\n{table}")


def environment(busy: str | None, rounds: int) -> str:
    """Return when and where it was measured, and what else ran."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    meanwhile = f", while {busy} ran" if busy else ""
    times = "one round" if rounds == 1 else f"{rounds} rounds"
    return f"Measured on {datetime.now(UTC):%Y-%m-%d}: {times}, {os.cpu_count()} cores, {memory:.0f} GiB{meanwhile}."


def _line(fault: Fault | NoFault, verdicts: Sequence[Verdict]) -> str:
    bound = f"{fault.bound:.0f} s" if isinstance(fault, Fault) else ("yes" if fault.may_be_unknown else "no")
    if not verdicts:
        return f"| {fault.title} | {bound} | | | | not tried |"
    seconds = [verdict.seconds for verdict in verdicts if verdict.seconds is not None]
    figures = [f"{figure(seconds):.1f} s" if seconds else "never" for figure in (min, median, max)]
    if len(seconds) < len(verdicts):
        figures[-1] = "never"
    wrong = dict.fromkeys(words for verdict in verdicts for words in verdict.wrong)
    verdict = "yes" if holds(fault, verdicts) else "; ".join(["**no**", *wrong])
    return f"| {fault.title} | {bound} | {' | '.join(figures)} | {verdict} |"
