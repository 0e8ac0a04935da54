"""What it costs that Ray's control service (the GCS) keeps its state on a disk: `python -m bench.gcs_storage`.

A GCS in memory and one with RocksDB take turns, each in a new Ray on this machine. The table has medians of the rounds.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import ray
from ray._private import worker

CREATIONS = 20
SETTLE_SECONDS, REST_SECONDS = 3.0, 10.0
_QUIET = {"include_dashboard": False, "log_to_driver": False, "logging_level": "error"}
_ROWS = {
    "start": "s from the start of the GCS to the driver's first answer, without a state",
    "next": "s for this at the next head, with the state of {actors} actors",
    "creation": f"s to create an actor, until its constructor has returned (median of {CREATIONS})",
    "registration": "s to register {actors} actors that fit on no node",
    "written": "KiB that the GCS writes for each of these",
    "resident": "MiB of memory of the GCS with these",
    "state": "MiB on the disk with these",
    "rest": "KiB that the GCS writes each second at rest, with one node",
}


class _Actor: ...


def measure(directory: Path, kind: str, actors: int) -> dict[str, float]:
    """Start a Ray with this process as its driver, and return its figures: only its start for the next head."""
    state = directory / "state"
    config = {} if kind == "memory" else {"gcs_storage": "rocksdb", "gcs_storage_path": str(state)}
    ray.init("local", num_cpus=2, namespace="bench", _system_config=config, _temp_dir=f"{directory}/ray", **_QUIET)
    names = ray.util.list_named_actors()
    gcs = Path("/proc", str(worker._global_node.all_processes["gcs_server"][0].process.pid))
    started = int((gcs / "stat").read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    answered_after = time.clock_gettime(time.CLOCK_BOOTTIME) - started
    if kind == "next":
        # The next head drops the actors that were never on a node.
        assert f"created-{CREATIONS - 1}" in names, f"the next head has lost the last created actor: {names}"
        return {"next": answered_after}
    actor = ray.remote(num_cpus=0, max_restarts=-1)(_Actor)
    creations = []
    for number in range(CREATIONS):
        began = time.perf_counter()
        created = actor.options(name=f"created-{number}", lifetime="detached").remote()
        ray.get(created.__ray_ready__.remote())
        creations.append(time.perf_counter() - began)
        if number < CREATIONS - 1:
            ray.kill(created)
    time.sleep(SETTLE_SECONDS)
    before = _number(gcs / "io", "\nwrite_bytes:")
    time.sleep(REST_SECONDS)
    at_rest, began = _number(gcs / "io", "\nwrite_bytes:"), time.perf_counter()
    for number in range(actors):
        # A call with a name returns when the GCS has registered the actor.
        actor.options(name=f"waiting-{number}", lifetime="detached", resources={"nowhere": 1}).remote()
    figures = {"start": answered_after, "creation": median(creations), "registration": time.perf_counter() - began}
    time.sleep(SETTLE_SECONDS)
    figures |= {
        "written": (_number(gcs / "io", "\nwrite_bytes:") - at_rest) / 1024 / actors,
        "resident": _number(gcs / "status", "\nVmRSS:") / 1024,
        "rest": (at_rest - before) / 1024 / REST_SECONDS,
    }
    if kind == "disk":
        figures["state"] = int(subprocess.check_output(["du", "-sk", state]).split()[0]) / 1024
    return figures


def _number(file: Path, label: str) -> int:
    return int(file.read_text().partition(label)[2].split()[0])


def in_a_process(*args: object) -> dict[str, float]:
    """Measure in a process, and kill that process with its Ray."""
    command = ["setpriv", "--pdeathsig=KILL", sys.executable, "-m", "bench.gcs_storage", "--measure", *map(str, args)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            if process.stdout and (line := process.stdout.readline()):
                return dict(json.loads(line))
            raise RuntimeError(f"nothing was measured with {args}: see above")
        finally:
            end_descendants()


def end_descendants() -> None:
    """Kill the processes of this one, which inherits the processes of those that end, until none is left."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    with contextlib.suppress(ChildProcessError):
        while True:
            for pid in children.read_text().split():
                os.kill(int(pid), signal.SIGKILL)
            os.waitpid(-1, 0)


def table(found: Mapping[str, Sequence[Mapping[str, float]]], actors: int) -> str:
    """Return a line for each figure."""
    lines = ["| | in memory | on a disk | ratio |", "|---|--:|--:|--:|"]
    for key, title in _ROWS.items():
        memory, disk = (median(each[key] for each in kind) if key in kind[0] else None for kind in found.values())
        cells = ["-" if value is None else f"{value:.3g}" for value in (memory, disk)]
        cells.append(f"{disk / memory:.2f}x" if memory and disk else "-")
        lines.append(f"| {title.format(actors=actors)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--actors", type=int, default=10_000, help="actors that fit on no node")
    parser.add_argument("--directory", help="on the disk to measure; the default is the temporary directory")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        directory, kind, actors = arguments.measure
        print(json.dumps(measure(Path(directory), kind, int(actors))), flush=True)
        signal.pause()  # until it is killed
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
    os.environ.update(RAY_AUTH_MODE="disabled", RAY_prestart_worker_first_driver="0")
    found: dict[str, list[dict[str, float]]] = {"memory": [], "disk": []}
    for _ in range(arguments.rounds):
        for kind, figures in found.items():
            with tempfile.TemporaryDirectory(prefix="gcs-", dir=arguments.directory) as directory:
                figures.append(in_a_process(directory, kind, arguments.actors))
                if kind == "disk":
                    figures[-1] |= in_a_process(directory, "next", arguments.actors)
            print(kind, json.dumps({key: round(value, 3) for key, value in figures[-1].items()}), flush=True)
    load = f"load average {os.getloadavg()[0]:.1f}"
    print(f"\n{os.cpu_count()} cores, {load}, ray {ray.__version__}.\n\n{table(found, arguments.actors)}")


if __name__ == "__main__":
    main()
