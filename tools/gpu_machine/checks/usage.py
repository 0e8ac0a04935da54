"""What `workergroups top` says of ranks and devices, compared with their own clocks and the driver of the devices."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tools.gpu_machine.checks import command_line, pods
from tools.gpu_machine.checks.site import Site

_ROUNDS, _SECONDS = 8, 10.0
# Ranks report every ten seconds.
_REPORTED_SECONDS = 15
_MOST_WRONG = 0.02
_QUERY = ("nvidia-smi", "--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits")
_MIB = 1 << 20


def check(site: Site) -> None:
    """Let ranks compute by a schedule, and ask what they did, meanwhile and afterwards."""
    pods.clear(site.kubectl)
    pods.have_ranks(site)
    with ThreadPoolExecutor(1) as threads:
        program = threads.submit(pods.run_program, site, "compute", str(_ROUNDS), str(_SECONDS))
        time.sleep(_SECONDS * 0.6)  # in the middle of a call, and later than a report of Ray's node agent
        own = [line for pod in pods.workers(site) for line in pods.execute(site, pod, *_QUERY).splitlines()]
        devices = _top(site)["devices"]
        command_line.run(site, "top", "pool/gpu")
        well, printed = program.result()
    time.sleep(_REPORTED_SECONDS)
    command_line.run(site, "top", "group/gpu")
    site.say.row("the program ran", well, printed)
    spent = [float(each) for each in printed.splitlines()[-1].split()]
    booked = [rank["seconds"] * rank["methods"].get("compute", 0) for rank in _top(site)["items"]]
    wrong = max(abs(ours / theirs - 1) for ours, theirs in zip(booked, spent, strict=True))
    seen = f"{booked}, {spent}: {wrong:.1%}"
    site.say.row("seconds are booked as they were spent, to 2 %", wrong <= _MOST_WRONG, seen)
    site.say.row("utilisation and memory are the driver's", _alike(devices, own), f"{devices}, nvidia-smi: {own}")


def _top(site: Site) -> Any:
    """Return what the command says of the group's ranks, as scripts get it."""
    _, printed = command_line.run(site, "top", "group/gpu", "--output=json")
    return json.loads(printed[printed.index("{") :])


def _alike(devices: list[dict[str, Any]], own: list[str]) -> bool:
    """Return whether each device is busy by both, and has the same memory to 1 GiB; both in their own order."""
    ours = sorted((each["usedBytes"], each["utilization"]) for each in devices)
    theirs = sorted((int(used) * _MIB, int(busy) / 100) for busy, used in (line.split(",") for line in own))
    return len(ours) == len(theirs) and all(
        abs(used - by_driver) < 1 << 30 and min(busy, busy_by_driver) > 0.5
        for (used, busy), (by_driver, busy_by_driver) in zip(ours, theirs, strict=True)
    )
