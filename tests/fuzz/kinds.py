"""The kinds of cases, which kind a seed has, and which processes play them."""

import asyncio
import os
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection

from tests.fuzz import edits, files, launches, names, served
from tests.fuzz.case import Check, Outcome, choices_of
from tests.simulation.control_plane import Access

# How many of a hundred cases are of each kind, by their cost and by what they find. A case of launches takes half a
# minute, and its raylets need ten seconds to start: there are twenty such cases in 10,000.
KINDS = {"served": 29.9, "files": 35, "names": 33.8, "launches": 0.2, "largest": 0.1, "edits": 1}
# These come last: launches need the processors, and objects at their maxima keep an API server busy.
LAST = ("launches", "largest")
# Among this many consecutive seeds, those of one kind share a process.
BATCH = 200
_CHECKS: dict[str, Check] = {"files": files.check, "names": names.check}


@dataclass(frozen=True)
class Unit:
    """Cases of one kind that share a process."""

    kind: str
    seeds: Sequence[int]

    @property
    def needs_api_server(self) -> bool:
        """Whether it needs a control plane."""
        return self.kind in ("served", "largest", "edits")


def units(seeds: Sequence[int], only: str | None) -> Iterator[Unit]:
    """Return the work in order, of all kinds or of one."""
    last: list[Unit] = []
    for start in range(0, len(seeds), BATCH):
        of_kind: dict[str, list[int]] = {}
        for seed in seeds[start : start + BATCH]:
            of_kind.setdefault(_kind_of(seed), []).append(seed)
        for kind, found in sorted(of_kind.items(), key=lambda item: item[1][0]):
            if only not in (None, kind):
                continue
            if kind in LAST:
                last.append(Unit(kind, found))
            else:
                # Each history of edits has its own namespace and process.
                yield from (Unit(kind, [seed]) for seed in found) if kind == "edits" else (Unit(kind, found),)
    yield from last


def _kind_of(seed: int) -> str:
    return choices_of(seed, "kind").choices(list(KINDS), list(KINDS.values()))[0]


def play(unit: Unit, access: Access | None, pipe: Connection) -> None:
    """Play a unit in this process, which ends with it."""
    try:
        match unit.kind, access:
            case "served" | "largest", Access():
                outcome = asyncio.run(served.play(access, unit.seeds, unit.kind))
            case "edits", Access():
                outcome = asyncio.run(edits.play(access, unit.seeds[0]))
            case "launches", _:
                with launches.checks() as check:
                    outcome = _checked(unit, check, pipe)
            case _:
                outcome = _checked(unit, _CHECKS[unit.kind], pipe)
    except BaseException:
        outcome = Outcome(unit.kind, unit.seeds, failures={unit.seeds[0]: traceback.format_exc()})
    pipe.send(outcome)
    # Threads that were killed are not waited for.
    os._exit(0)


def _checked(unit: Unit, check: Check, pipe: Connection) -> Outcome:
    outcome = Outcome(unit.kind, unit.seeds)
    for seed in unit.seeds:
        pipe.send(seed)
        try:
            outcome.note(check(choices_of(seed, unit.kind)))
        except Exception:
            outcome.failures[seed] = traceback.format_exc()
    return outcome
