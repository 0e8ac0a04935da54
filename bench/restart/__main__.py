"""Measure, and publish: ``python -m bench.restart [--rounds=N] [--page=PAGE]``, on a local Ray."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from bench.page import put
from tests.ray.agent.planned import Agent

from . import raw
from .group import COLD, Measured, agent
from .memory import Share, share

RANKS = (4, 1)
OF_RECREATION, OF_RAW = 0.35, 1.2
"""The targets: at most these ratios to deleting and creating the group, and to raw Ray."""
RECREATION = "the group is deleted and created"
COLD_RESTART = "restart without fork server"
RESTART = "restart"
RAW = "raw Ray actors that import nothing, replaced"


class Size(NamedTuple):
    """What was measured with groups of one size."""

    ranks: int
    seconds: Mapping[str, Sequence[float]]
    """Of each kind, of all rounds."""
    cold: Share
    """The memory of the ranks that started without a fork server."""
    first: Share
    """The memory after the first start, with a fork server."""
    forked: Share
    """The memory after a restart."""

    def median(self, kind: str) -> float:
        """Return the median of the rounds."""
        return statistics.median(self.seconds[kind])

    @property
    def missed(self) -> list[str]:
        """The targets that were missed."""
        ratios = ((RECREATION, OF_RECREATION), (RAW, OF_RAW))
        found = ((kind, self.median(RESTART) / self.median(kind), target) for kind, target in ratios)
        return [f"{self.ranks} ranks: {ratio:.2f}x of: {kind}" for kind, ratio, target in found if ratio > target]


def measure(ours: Agent, count: int, rounds: int) -> Size:
    """Take turns. Each restart begins when the fork server waits for it."""
    seconds: dict[str, list[float]] = {kind: [] for kind in (RECREATION, COLD_RESTART, RAW, RESTART)}
    shares = []
    for _ in range(rounds):
        cold = Measured(ours, count, COLD)
        cold.answers()
        of_cold = share(cold.pids, None)
        seconds[COLD_RESTART].append(cold.restart())
        seconds[RECREATION].append(cold.recreate())
        cold.delete()
        seconds[RAW].append(raw.restart(count))
        warm = Measured(ours, count)
        warm.answers()
        of_first = share(warm.pids, warm.fork_server())
        seconds[RESTART] += [warm.restart(), warm.restart()]
        shares.append((of_cold, of_first, share(warm.pids, warm.fork_server())))
        warm.delete()
        latest = ", ".join(f"{kind} {found[-1]:.1f} s" for kind, found in seconds.items())
        print(f"{_ranks(count)}: {latest}", flush=True)
    return Size(count, seconds, *shares[-1])


def table(sizes: Sequence[Size]) -> str:
    """Return a line for each kind, with the medians of the rounds and the quickest and the slowest."""
    lines = [
        f"| from the kill to the answers | {' | '.join(_ranks(size.ranks) for size in sizes)} |",
        f"|---|{'--:|' * len(sizes)}",
    ]
    for kind in (RECREATION, COLD_RESTART, RAW, RESTART):
        lines.append(f"| {kind} | {' | '.join(_spread(size, kind) for size in sizes)} |")
    for kind, target in ((RECREATION, OF_RECREATION), (RAW, OF_RAW)):
        ratios = (size.median(RESTART) / size.median(kind) for size in sizes)
        lines.append(f"| restart / {kind} (at most {target}x) | {' | '.join(f'{ratio:.2f}x' for ratio in ratios)} |")
    return "\n".join(lines) + "\n"


def memory_table(sizes: Sequence[Size]) -> str:
    """Return a line for each size, in MiB."""
    lines = [
        "| MiB on the node | ranks alone | ranks + fork server, first start | ranks + fork server, restarted |",
        "|---|--:|--:|--:|",
    ]
    for size in sizes:
        cells = (f"{each.ranks:.0f} + {each.server:.0f} = {each.total:.0f}" for each in (size.first, size.forked))
        lines.append(f"| {_ranks(size.ranks)} | {size.cold.total:.0f} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def environment() -> str:
    """Return when and on what it was measured; the load of the machine matters most."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("ray", "torch"))
    load, *_ = os.getloadavg()
    return f"Measured on {datetime.now(UTC):%Y-%m-%d}: {os.cpu_count()} cores, load average {load:.0f}, {versions}."


def _ranks(count: int) -> str:
    return f"{count} ranks" if count > 1 else "1 rank"


def _spread(size: Size, kind: str) -> str:
    seconds = size.seconds[kind]
    return f"{size.median(kind):.1f} s ({min(seconds):.1f} to {max(seconds):.1f})"


def main() -> None:
    """Measure each size, print the tables, and put them into the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.restart", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--page", type=Path)
    arguments = parser.parse_args()
    with agent() as ours:
        sizes = [measure(ours, count, arguments.rounds) for count in RANKS]
    text = f"{environment()}\n\n{table(sizes)}\n{memory_table(sizes)}"
    print(text)
    if arguments.page:
        put(arguments.page, "measured", text)
    if missed := [each for size in sizes for each in size.missed]:
        sys.exit("missed: " + "; ".join(missed))


if __name__ == "__main__":
    main()
