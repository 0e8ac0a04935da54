"""Ranks whose start is heavy or odd: 8 GiB of weights; a module that uses the device while it is imported."""

import time

from tools.gpu_machine.checks import pods
from tools.gpu_machine.checks.site import Site, group

_MOST_SECONDS = 60


def check(site: Site) -> None:
    """Start each kind with the group `gpu`, kill a rank, and see the next ones compute."""
    pods.have_ranks(site)
    for name, path in (("big", "ranks.Big"), ("eager", "eager.Eager")):
        before = pods.used_memory(site)
        pods.apply(site, group(name, worker={"class": path}))
        seconds = pods.until_ready(site, f"workergroup/{name}")
        site.say.row(f"{path} starts within {_MOST_SECONDS} s", seconds < _MOST_SECONDS, f"{seconds:.1f} s")
        well, printed = pods.run_program(site, "count", name)
        site.say(printed)
        site.say.row(f"{path} computes, and again after a death", well, printed.splitlines()[-1])
        site.say(f"used memory: {before} MiB before, {pods.used_memory(site)} MiB with its ranks")
        site.kubectl("delete", f"workergroup/{name}", "--timeout=60s")
        time.sleep(5)
        pods.judge_memory(site, f"{path} leaves nothing on the devices", before)
