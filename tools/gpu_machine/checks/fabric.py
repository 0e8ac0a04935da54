"""`workergroups check POOL --fabric`: all devices sum over NCCL, and a user reads how fast."""

import re

from tools.gpu_machine.checks import command_line, pods
from tools.gpu_machine.checks.site import Site


def check(site: Site) -> None:
    """Check an empty pool."""
    pods.clear(site.kubectl)
    pods.apply(site, site.pool("gpu"))
    pods.until_ready(site, "resourcepool/gpu")
    code, printed = command_line.run(site, "check", "gpu", "--fabric")
    found = re.findall(r".*GB/s.*", printed)
    site.say.row("the fabric is measured over NCCL", code == 0 and any("nccl" in each for each in found), found)
