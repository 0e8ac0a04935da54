"""A batch of 1 GiB goes from group to group in pods, on their devices; also while CUDA graphs are captured."""

import json

from tools.gpu_machine.checks import command_line, pods
from tools.gpu_machine.checks.site import Site, group

_DRIVER_MIB = 200
_CAPTURES = 10


def check(site: Site) -> None:
    """Let a driver on the head hand batches over."""
    pods.have_ranks(site)
    pods.apply(site, group("second"))
    pods.until_ready(site, "workergroup/second")
    before = pods.used_memory(site)
    well, printed = pods.run_program(site, "hand_over")
    site.say(printed)
    seen = json.loads(printed.splitlines()[-1]) if well else {}
    arrived = bool(seen) and seen["right"] and seen["devices"] == ["cuda:0"]
    site.say.row("batches arrive on the devices of the other ranks", arrived, printed.splitlines()[-1])
    site.say.row("each rank reads what another device has", bool(seen), seen.get("crossed"))
    site.say.row("the driver touches none of their bytes", bool(seen) and seen["mib"] < _DRIVER_MIB, seen.get("mib"))
    captured = bool(seen) and min(seen["captured"]) > _CAPTURES
    site.say.row("ranks capture CUDA graphs while others read from them", captured, seen.get("captured"))
    pods.judge_memory(site, "batches leave nothing on the devices", before)
    for name in ("gpu", "second"):  # they say which way batches went
        command_line.run(site, "logs", name)
    site.kubectl("delete", "workergroup/second", "--timeout=60s")
