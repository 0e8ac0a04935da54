"""Checks on the GPU machine's cluster. They print what users would read, word for word, and a table of what holds."""

from collections.abc import Callable

from tools.gpu_machine.checks import (
    batches,
    devices,
    fabric,
    faults,
    heads,
    peers,
    preflights,
    roles,
    seeds,
    starts,
    training,
    usage,
)
from tools.gpu_machine.checks.site import Site

CHECKS: dict[str, Callable[[Site], None]] = {
    "devices": devices.check,
    **faults.CHECKS,
    "batches": batches.check,
    "heads": heads.check,
    "peers": peers.check,
    "starts": starts.check,
    "seeds": seeds.check,
    "preflights": preflights.check,
    "fabric": fabric.check,
    "usage": usage.check,
}
# These need pieces with verl, and are run by name only.
WITH_VERL: dict[str, Callable[[Site], None]] = {**training.CHECKS, "roles": roles.check}
