"""A rank that dies alone has its weights from its peer before its group is Ready; next to that, from a file."""

import json

from tools.gpu_machine.checks import pods
from tools.gpu_machine.checks.site import Site, group

GIB = 15


def check(site: Site) -> None:
    """Let rank 1 end twice; with one GPU there are no peers."""
    if site.gpus == 1:
        site.say("left out: it needs two GPUs")
        return
    pods.clear(site.kubectl)
    pods.have_code(site)
    alone = group("replica")["spec"]["failurePolicy"] | {"restart": "Rank"}
    worker = {"class": "ranks.Replica", "kwargs": {"gib": GIB}}
    pods.apply(site, site.pool("gpu"), group("replica", worker=worker, failurePolicy=alone))
    pods.until_ready(site, "workergroup/replica")
    well, printed = pods.run_program(site, "replace")
    site.say(printed)
    site.say.row("the program ran", well, printed.splitlines()[-1])
    seen = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    came_from = [each["from"] for each in seen]
    site.say.row("a peer's weights are taken, and a file only without them", came_from == ["peers", "file"], seen)
    pods.clear(site.kubectl)
