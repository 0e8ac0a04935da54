"""Play cases: `python -m tests.fuzz --cases=10000 --first=1 --minutes=2 --kind=served --jobs=2`."""

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from multiprocessing.connection import wait

from tests.fuzz.case import Outcome
from tests.fuzz.kinds import KINDS, Unit, play, units
from tests.simulation.control_plane import Access, control_plane
from tools.console import end_when_told

# Work that takes longer hangs.
UNIT_SECONDS = 600.0
# Each API server keeps the latest versions of all large objects for watches: 3 GB after this many cases.
CASES_OF_API_SERVER = 1000


def main() -> int:
    """Play the cases, and report those that failed."""
    arguments = _arguments()
    end_when_told()
    first = int(time.time()) if arguments.first is None else arguments.first
    print(f"cases from {first}", flush=True)
    began = time.monotonic()
    until = began + arguments.minutes * 60 if arguments.minutes else float("inf")
    outcomes: list[Outcome] = []
    for start in range(first, first + arguments.cases, CASES_OF_API_SERVER):
        if time.monotonic() < until:
            seeds = range(start, min(start + CASES_OF_API_SERVER, first + arguments.cases))
            outcomes += _play(list(units(seeds, arguments.kind)), until, arguments.jobs)
    return _summarize(outcomes, time.monotonic() - began)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="how many cases")
    parser.add_argument("--first", type=int, help="the first seed; by default one that no earlier run used")
    parser.add_argument("--minutes", type=float, default=0, help="start no case after this time; 0: start all")
    parser.add_argument("--kind", choices=KINDS, help="only the cases of this kind")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many processes at a time")
    return parser.parse_args()


class _Running:
    """A unit in its own process, which sends each seed when it begins with it, and the outcome at the end."""

    def __init__(self, unit: Unit, access: Access | None) -> None:
        forked = multiprocessing.get_context("fork")
        self.unit = unit
        self.pipe, theirs = forked.Pipe(duplex=False)
        # Not a daemon, since it starts processes itself.
        self.process = forked.Process(target=play, args=(unit, access, theirs))
        self.began = time.monotonic()
        self.at = unit.seeds[0]
        self.process.start()
        theirs.close()

    def outcome(self) -> Outcome | None:
        """Return the outcome, None while it runs."""
        try:
            while self.pipe.poll():
                found = self.pipe.recv()
                if isinstance(found, Outcome):
                    return self._ended(found)
                self.at = found
        except EOFError:
            return self._ended(self._failed("its process ended"))
        if time.monotonic() - self.began > UNIT_SECONDS:
            return self._ended(self._failed("it hangs"))
        return None

    def _failed(self, why: str) -> Outcome:
        return Outcome(self.unit.kind, self.unit.seeds, failures={self.at: why})

    def _ended(self, outcome: Outcome) -> Outcome:
        self.process.kill()
        self.process.join()
        self.pipe.close()
        outcome.seconds = time.monotonic() - self.began
        return outcome


def _play(work: Sequence[Unit], until: float, jobs: int) -> list[Outcome]:
    """Play what can begin before `until`, `jobs` at a time, with a new API server if it needs one."""
    if not any(unit.needs_api_server for unit in work):
        return _play_with(None, iter(work), until, jobs)
    with control_plane() as access:
        return _play_with(access, iter(work), until, jobs)


def _play_with(access: Access | None, work: Iterator[Unit], until: float, jobs: int) -> list[Outcome]:
    running: list[_Running] = []
    outcomes: list[Outcome] = []
    try:
        while True:
            while len(running) < jobs and time.monotonic() < until and (unit := next(work, None)):
                running.append(_Running(unit, access))
            if not running:
                return outcomes
            wait([each.pipe for each in running], timeout=1.0)
            for each in list(running):
                if (outcome := each.outcome()) is not None:
                    running.remove(each)
                    outcomes.append(outcome)
                    _tell(outcome)
    finally:
        for each in running:  # Python would wait for them.
            each.process.kill()


def _tell(outcome: Outcome) -> None:
    verdict = f"FAILED {sorted(outcome.failures)}" if outcome.failures else "ok"
    print(f"{outcome.kind}: {len(outcome.seeds)} cases from {outcome.seeds[0]} {verdict} in {outcome.seconds:.1f} s")
    for seed, why in outcome.failures.items():
        print(f"case {seed}: {why}\nagain: make fuzz CASES=1 FIRST={seed} KIND={outcome.kind}")
        if len(outcome.seeds) > 1 and outcome.kind == "served":
            count = outcome.seeds[-1] - outcome.seeds[0] + 1
            print(f"with its neighbours: make fuzz CASES={count} FIRST={outcome.seeds[0]} KIND={outcome.kind}")
    sys.stdout.flush()


def _summarize(outcomes: list[Outcome], seconds: float) -> int:
    for kind in KINDS:
        of_kind = [outcome for outcome in outcomes if outcome.kind == kind]
        seen = sum((Counter(outcome.seen) for outcome in of_kind), Counter())
        spent = sum(outcome.seconds for outcome in of_kind)
        print(f"{kind}: {_count(of_kind)} cases in {spent:.0f} s, {dict(sorted(seen.items()))}")
    failed = sorted(seed for outcome in outcomes for seed in outcome.failures)
    print(f"{_count(outcomes)} cases in {seconds:.0f} s, {len(failed)} failed: {failed}")
    return 1 if failed or not outcomes else 0


def _count(outcomes: list[Outcome]) -> int:
    return sum(len(outcome.seeds) for outcome in outcomes)


if __name__ == "__main__":
    sys.exit(main())
