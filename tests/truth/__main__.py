"""Cause the faults on the current cluster: `python -m tests.truth [--rounds N] [--busy [WITH]] [--only NAME]`."""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

from tools.console import ToolError, end_when_told, say

from . import machine
from .faults import FAULTS, NO_FAULTS, Fault, NoFault
from .judge import Verdict
from .measure import measure
from .stage import Stage
from .table import environment, holds, markdown, publish

ALL: tuple[Fault | NoFault, ...] = (*NO_FAULTS, *FAULTS)


def main() -> int:
    """Measure, print the table, and publish that of a complete run; return 1 if a bound is exceeded."""
    arguments = _parser().parse_args()
    end_when_told()  # Continue whatever was stopped.
    chosen = [fault for fault in ALL if not arguments.only or fault.name in arguments.only]
    tried = [fault for fault in chosen if machine.is_local() or not fault.needs_local]
    for fault in chosen:
        if fault not in tried:
            say(f"not tried: {fault.title}: this needs the local cluster, whose processes or links it stops")
    verdicts: dict[str, list[Verdict]] = defaultdict(list)
    try:
        with ExitStack() as undo:
            if arguments.busy == machine.BUSY_CORES:
                machine.keep_busy(undo)
            for has_claim in sorted({_has_claim(fault) for fault in tried}):
                with Stage(has_claim=has_claim) as stage:
                    for number in range(arguments.rounds):
                        say(f"round {number + 1} of {arguments.rounds}")
                        for fault in tried:
                            if _has_claim(fault) is has_claim:
                                verdicts[fault.name].append(measure(stage, fault))
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        table = markdown(chosen, verdicts)
        print(f"{environment(arguments.busy, arguments.rounds)}\n\n{table}")
    if arguments.page and not arguments.only:
        publish(arguments.page, arguments.busy, table, arguments.rounds)
    return 0 if all(holds(fault, verdicts[fault.name]) for fault in tried) else 1


def _has_claim(fault: Fault | NoFault) -> bool:
    return isinstance(fault, NoFault) and fault.has_claim


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.truth", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1, help="how often to try each fault")
    parser.add_argument(
        "--busy",
        nargs="?",
        const=machine.BUSY_CORES,
        metavar="WITH",
        help="keep every core busy meanwhile; with WITH, start nothing, but name it in the page",
    )
    names = [fault.name for fault in ALL]
    parser.add_argument("--only", action="append", choices=names, help="try only this one; can be repeated")
    parser.add_argument("--page", type=Path, help="the page for the table of a complete run")
    return parser


if __name__ == "__main__":
    sys.exit(main())
