"""Measure, and publish: ``python -m bench.start [--rounds=N] [--page=PAGE]``, on a cluster with the operator."""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.page import put
from tools.console import say

from .rounds import ANSWERS, READY, Round, kuberay, ours

TARGET = 0.8
CONSEQUENCES = {"WorkerGroup UpToDate", "ResourcePool UpToDate", "RayCluster RayClusterProvisioned"}
"""Facts for which nothing waits."""


def main() -> None:
    """Take turns, print each round, and put the tables into the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.start", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--page", type=Path)
    arguments = parser.parse_args()
    started: list[Round] = []
    beside: list[Round] = []
    for _ in range(arguments.rounds):
        started.append(ours())
        beside.append(kuberay(started[-1].cluster))
        answers, ready = started[-1].moments[ANSWERS], beside[-1].moments[READY]
        say(f"ranks answer after {answers:.1f} s, KubeRay reports ready after {ready:.1f} s: {answers / ready:.2f}x")
    text = f"{environment()}\n\n{comparison(started, beside)}\n{timeline(started)}"
    print(text)
    if arguments.page:
        put(arguments.page, "measured", text)


def environment() -> str:
    """Return when and on what it was measured; the load of the machine matters most."""
    load, *_ = os.getloadavg()
    return f"Measured on {datetime.now(UTC):%Y-%m-%d}: {os.cpu_count()} cores, load average {load:.0f}."


def comparison(started: Sequence[Round], beside: Sequence[Round]) -> str:
    """Return a table with one line for each round."""
    lines = ["| round | ranks answer | KubeRay's `ready`, its own probes | ratio |", "|--:|--:|--:|--:|"]
    pairs = [(ours_.moments[ANSWERS], theirs.moments[READY]) for ours_, theirs in zip(started, beside, strict=True)]
    lines += [f"| {n} | {a:.1f} s | {b:.1f} s | {a / b:.2f}x |" for n, (a, b) in enumerate(pairs, 1)]
    a, b = (statistics.median(each) for each in zip(*pairs, strict=True))
    lines.append(f"| median | {a:.1f} s | {b:.1f} s | {a / b:.2f}x of at most {TARGET}x |")
    return "\n".join(lines) + "\n"


def timeline(started: Sequence[Round]) -> str:
    """Return the facts of every round by the median of their times, with the seconds since the previous fact."""
    told = set.intersection(*({fact for fact in each.moments if fact not in CONSEQUENCES} for each in started))
    medians = sorted((statistics.median(each.moments[fact] for each in started), fact) for fact in told)
    lines, before = ["| s after apply | + | what |", "|--:|--:|---|"], 0.0
    for at, fact in medians:
        lines.append(f"| {at:.1f} | {max(0.0, at - before):.1f} | {fact} |")
        before = at
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
