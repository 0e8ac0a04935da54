"""Checks on the GPU machine's cluster. They print what users would read, word for word, and a table of what holds."""

from collections.abc import Callable, Mapping

from tools.gpu_machine.checks import devices, faults, preflights, seeds, starts
from tools.gpu_machine.checks.site import Site

CHECKS: Mapping[str, Callable[[Site], None]] = {
    "devices": devices.check,
    **faults.CHECKS,
    "starts": starts.check,
    "seeds": seeds.check,
    "preflights": preflights.check,
}
