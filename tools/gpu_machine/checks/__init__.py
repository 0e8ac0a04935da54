"""Checks on the GPU machine's cluster: what pods see of the devices, and what becomes of each fault of a rank.

They print what users would read, word for word, and judge nothing: people do.
"""

from collections.abc import Callable

from tools.demo.kubectl import Kubectl
from tools.gpu_machine.checks import devices, faults

CHECKS: dict[str, Callable[[Kubectl], None]] = {"devices": devices.check, **faults.CHECKS}
