"""Measure what a worker process of Ray pays so that it can be asked for its stacks: `python -m bench.worker_start`.

Ray's program and ours, which runs Ray's, take turns. Each imports what it imports, reads its command line and ends: it
is asked for ``--help``. The CPU time counts, since other programs change how long that takes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys

from workergroups.ray_private.start import RAYS_DEFAULT_WORKER
from workergroups.worker_process import default_worker

TARGET_SECONDS = 0.05
PROGRAMS = {"Ray's": RAYS_DEFAULT_WORKER, "ours": default_worker.__file__}


def cpu_seconds(program: str) -> float:
    """Run a program of a worker until it has read its command line; return the CPU time that it took."""
    process = subprocess.Popen([sys.executable, program, "--help"], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Print the medians of all rounds; return 1 if ours takes more than the target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    for program in PROGRAMS.values():
        cpu_seconds(program)  # its files are read from the disk
    taken = [{name: cpu_seconds(program) for name, program in PROGRAMS.items()} for _ in range(rounds)]
    medians = {name: statistics.median(each[name] for each in taken) for name in PROGRAMS}
    more = statistics.median(each["ours"] - each["Ray's"] for each in taken)
    for name, median in medians.items():
        print(f"{name}: {median * 1000:.0f} ms of CPU time (median of {rounds})")
    ratio = medians["ours"] / medians["Ray's"]
    is_met = more < TARGET_SECONDS
    print(f"ours takes {more * 1000:+.1f} ms (median of the rounds' differences; {ratio:.3f}x of the medians)")
    print(f"target: less than {TARGET_SECONDS * 1000:.0f} ms: {'met' if is_met else 'missed'}")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
