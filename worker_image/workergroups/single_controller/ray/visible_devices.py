"""Which devices a rank sees, beyond what Ray sees to.

Ray gives each rank CUDA_VISIBLE_DEVICES (ASCEND_RT_VISIBLE_DEVICES for an NPU), or HIP_VISIBLE_DEVICES where it detects
AMD hardware: its own device alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

VENDOR_ENV = "WORKERGROUPS_ACCELERATOR_VENDOR"
"""Set in pods whose accelerators have a vendor, to ``nvidia``, ``amd`` or ``none``."""

_LEAVE_VISIBLE_ENV = (
    "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES",
    "RAY_EXPERIMENTAL_NOSET_HIP_VISIBLE_DEVICES",
    "RAY_EXPERIMENTAL_NOSET_ASCEND_RT_VISIBLE_DEVICES",
)


def device_env(own_ids: Sequence[str], device_name: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables to set in a rank's process so that it uses its own devices.

    Args:
        own_ids: The ids of the devices that Ray assigned to the rank; may be empty.
        device_name: The group's kind of device; the pod's vendor variable goes before it.
        environ: The process's environment as Ray set it up.
    """
    if not own_ids:
        return {}
    if any(environ.get(name) for name in _LEAVE_VISIBLE_ENV):
        # The user told Ray to leave all devices visible, so the rank must be told which one is its own.
        return {"LOCAL_RANK": own_ids[0]}
    vendor = environ.get(VENDOR_ENV, device_name)
    if vendor == "amd" or "HIP_VISIBLE_DEVICES" in environ:
        # ROCm software reads either name, and where both are set they must agree.
        own = ",".join(own_ids)
        return {"HIP_VISIBLE_DEVICES": own, "CUDA_VISIBLE_DEVICES": own}
    return {}
