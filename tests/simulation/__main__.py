"""Play histories: `python -m tests.simulation --seeds=1000 --first=1 --minutes=3 --jobs=4`."""

import argparse
import asyncio
import gc
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from tests.simulation import history
from tests.simulation.control_plane import Access, control_plane
from tests.simulation.pace import quicken
from tools.console import end_when_told

# A history that takes longer hangs.
HISTORY_SECONDS = 300.0
# Each API server keeps the latest versions of all objects for watches, and strangers make large ones.
HISTORIES_OF_API_SERVER = 100


def main() -> int:
    """Play the histories, and report those that failed."""
    arguments = _arguments()
    end_when_told()
    first = int(time.time()) if arguments.first is None else arguments.first
    print(f"seeds from {first}", flush=True)
    # Import what a history needs once, before the processes are forked.
    from workergroups_agent.reporter import serve  # noqa: F401
    from workergroups_operator import handlers  # noqa: F401

    quicken()
    gc.freeze()
    until = time.monotonic() + arguments.minutes * 60 if arguments.minutes else float("inf")
    played: list[history.History] = []
    for start in range(first, first + arguments.seeds, HISTORIES_OF_API_SERVER):
        if time.monotonic() < until:
            seeds = range(start, min(start + HISTORIES_OF_API_SERVER, first + arguments.seeds))
            with control_plane() as access:
                played += _play_all(access, iter(seeds), until, arguments)
    return _tell(played)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many histories")
    parser.add_argument("--first", type=int, help="the first seed; by default one that no earlier run used")
    parser.add_argument("--minutes", type=float, default=0, help="start no history after this time; 0: start all")
    # Histories wait for a third of their time.
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1), help="how many at a time")
    parser.add_argument("--strangers", type=float, default=0.0, help="in which part of the histories strangers come")
    parser.add_argument("--verbose", action="store_true", help="print what happens in each history")
    return parser.parse_args()


def _play_all(
    access: Access, seeds: Iterator[int], until: float, arguments: argparse.Namespace
) -> list[history.History]:
    """Play each history in its own process, so that none affects the next."""
    forked = multiprocessing.get_context("fork")
    course = replace(history.EVERYTHING, strangers=arguments.strangers)
    running: dict[Connection, tuple[int, BaseProcess, float]] = {}
    played: list[history.History] = []
    try:
        while True:
            while len(running) < arguments.jobs and time.monotonic() < until:
                seed = next(seeds, None)
                if seed is None:
                    break
                ours, theirs = forked.Pipe(duplex=False)
                process = forked.Process(target=_play, args=(access, seed, course, theirs), daemon=True)
                process.start()
                theirs.close()
                running[ours] = seed, process, time.monotonic()
            if not running:
                return played
            for ended in _ended(running):
                played.append(ended)
                _tell_of(ended, verbose=arguments.verbose)
    finally:
        for _, child, _ in running.values():
            child.kill()


def _ended(running: dict[Connection, tuple[int, BaseProcess, float]]) -> list[history.History]:
    ready = wait(list(running), timeout=1.0)
    found = []
    for pipe, (seed, process, began) in list(running.items()):
        is_late = time.monotonic() - began > HISTORY_SECONDS
        if pipe not in ready and not is_late:
            continue
        try:
            result: history.History = (
                pipe.recv()
                if pipe in ready
                else history.History(seed, violations=["it hangs"], seconds=HISTORY_SECONDS)
            )
        except EOFError:
            result = history.History(seed, violations=["its process ended"])
        process.kill()
        process.join()
        pipe.close()
        del running[pipe]
        found.append(result)
    return found


def _play(access: Access, seed: int, course: history.Course, pipe: Connection) -> None:
    try:
        result = asyncio.run(history.run(access, seed, course))
    except BaseException:
        result = history.History(seed, violations=[traceback.format_exc()])
    pipe.send(result)
    # Threads that were killed are not waited for.
    os._exit(0)


def _tell_of(ended: history.History, *, verbose: bool) -> None:
    outcome = "FAILED" if ended.violations else "ok"
    busy = f", too busy for {ended.overloads} s" if ended.overloads else ""
    spent = f"{ended.seconds:.1f} s ({ended.processor_seconds:.1f} s of CPU{busy})"
    print(f"seed {ended.seed}: {outcome} in {spent}", flush=True)
    if ended.violations or verbose:
        print("\n".join([*ended.log, *ended.violations]), flush=True)


def _tell(played: list[history.History]) -> int:
    failed = [each.seed for each in played if each.violations]
    seconds = sorted(each.seconds for each in played)
    faults: dict[str, int] = {}
    longest: dict[str, float] = {}
    ends: dict[str, int] = {}
    for each in played:
        for name, count in each.ends.items():
            ends[name] = ends.get(name, 0) + count
        for name, count in each.faults.items():
            faults[name] = faults.get(name, 0) + count
        for name, value in each.longest.items():
            longest[name] = max(longest.get(name, 0.0), value)
    print(f"{len(played)} histories, {len(failed)} failed: {failed}")
    if busy := [each.overloads for each in played if each.overloads]:
        print(f"the machine was too busy for bounds in seconds for {sum(busy)} s, in {len(busy)} histories")
    if seconds:
        print(f"seconds: median {seconds[len(seconds) // 2]:.1f}, longest {seconds[-1]:.1f}")
    print(f"faults: {dict(sorted(faults.items()))}")
    print(f"the operator ended without being told to: {ends}")
    print(f"longest wrong statuses, in seconds: { {name: round(value, 1) for name, value in sorted(longest.items())} }")
    return 1 if failed or not played else 0


if __name__ == "__main__":
    sys.exit(main())
