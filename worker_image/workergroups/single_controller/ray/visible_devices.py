"""Which devices a rank sees: those of its bundle, and no others.

Several groups share a bundle, and Ray can only share single devices, so a rank asks Ray for a share of one device. If
its bundle has several devices, Ray tells it one, and leaves only that one visible. The others follow from it: Ray
assigns whole devices to bundles in the order of the node's list. If a placement group takes all devices of a node, its
bundles of n devices are the blocks of n in that list. (`whole_nodes` checks that it takes them all.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workergroups_api.vocabulary import Variable, Vendor, is_on

_LEAVE_VISIBLE_ENV = (
    "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES",
    "RAY_EXPERIMENTAL_NOSET_HIP_VISIBLE_DEVICES",
    "RAY_EXPERIMENTAL_NOSET_ASCEND_RT_VISIBLE_DEVICES",
)


_NPU = "npu"


def ray_name(device_name: str) -> str:
    """Return what Ray calls devices of a kind that it counts: ``GPU``, or ``NPU`` for Ascend's."""
    return "NPU" if device_name == _NPU else "GPU"


def own_device_name(ray_name: str | None) -> str | None:
    """Return the kind of a bundle's devices if Ray's name of them tells, else ``None``: GPUs are of any vendor."""
    return _NPU if ray_name == "NPU" else None


def bundle_devices(assigned: Sequence[str], of_node: Sequence[str] | None, count: int) -> list[str]:
    """Return the devices of a rank's bundle, in the node's order.

    Args:
        assigned: The ids of the devices of which Ray gave the rank a share; empty for none.
        of_node: The ids that Ray may give out on the node, if the node's own visible-devices variable lists them;
            ``None`` where they are 0, 1, ...
        count: How many devices each bundle on the node has.

    Raises:
        ValueError: The node's devices do not make up such bundles.
    """
    if count == 1 or not assigned:
        return list(assigned)
    position = of_node.index(assigned[0]) if of_node is not None else int(assigned[0])
    start = position - position % count
    if of_node is None:
        return [str(device) for device in range(start, start + count)]
    if start + count > len(of_node):
        raise ValueError(f"the rank's node lists {len(of_node)} devices ({','.join(of_node)}): no bundles of {count}")
    return list(of_node[start : start + count])


def device_env(own_ids: Sequence[str], device_name: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables to set in a rank's process so that it uses its own devices.

    Args:
        own_ids: The ids of the rank's devices; may be empty.
        device_name: The group's kind of device; the pod's vendor variable takes precedence.
        environ: The process's environment as Ray has set it.

    Raises:
        ValueError: The node's list of devices is shorter than what Ray counts.
    """
    if not own_ids:
        return {}
    if any(is_on(environ.get(name)) for name in _LEAVE_VISIBLE_ENV):
        # The user told Ray to leave all devices visible, so LOCAL_RANK tells the rank which one is its own.
        return {"LOCAL_RANK": own_ids[0]}
    own = ",".join(own_ids)
    vendor = environ.get(Variable.ACCELERATOR_VENDOR, device_name)
    if device_name == _NPU:
        return {"ASCEND_RT_VISIBLE_DEVICES": own}
    if variable := environ.get(Variable.VISIBLE_DEVICES_ENV):
        return {variable: ",".join(_listed(own_ids, variable, environ.get(variable)))}
    if vendor == Vendor.AMD or "HIP_VISIBLE_DEVICES" in environ:
        # ROCm software reads either variable; if both are set, they must agree.
        return {"HIP_VISIBLE_DEVICES": own, "CUDA_VISIBLE_DEVICES": own}
    return {"CUDA_VISIBLE_DEVICES": own}


def check_own_env(given: Mapping[str, str], environ: Mapping[str, str]) -> None:
    """Refuse an environment that selects the devices of a rank by the variable that the pool names.

    Args:
        given: The variables that users gave to the rank.
        environ: The process's environment, from which the name of the variable comes.

    Raises:
        ValueError: The variable is among them.
    """
    variable = environ.get(Variable.VISIBLE_DEVICES_ENV)
    if variable in given:
        raise ValueError(f"the environment of a rank must not set {variable}, which selects its devices: remove it")


def _listed(numbers: Sequence[str], variable: str, of_node: str | None) -> list[str]:
    """Return the devices of these numbers in the node's list, which Ray does not know; the numbers if there is none."""
    if not of_node:
        return list(numbers)
    ids = of_node.split(",")
    if any(int(number) >= len(ids) for number in numbers):
        raise ValueError(f"{variable} of the rank's node lists {len(ids)} devices ({of_node}), and Ray counts more")
    return [ids[int(number)] for number in numbers]
