"""Which pods hold the devices that other pods wait for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workergroups_api.manifest import POD, Manifest
from workergroups_api.names import POOL_LABEL
from workergroups_common.quantities import value_of

from ..api_server.cluster import Cluster
from ..errors import ForbiddenError

_HAVE_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class Holder:
    """Pods of one owner on one Kubernetes node that hold devices of one kind."""

    node: str
    resource: str
    """The name by which pods ask for the devices, such as ``nvidia.com/gpu``."""
    namespace: str
    who: str
    """``pool NAME``; of other pods, the kind and the name of what creates them, or ``pod NAME``."""
    devices: int
    """How many they have together."""


def holders(cluster: Cluster, waiting: Sequence[Manifest]) -> tuple[list[Holder], str]:
    """Return who holds the devices for which pods wait that are on no node, and what could not be looked at.

    Args:
        cluster: Where to look: in all namespaces, or in the default one if the user may not list pods in all.
        waiting: Pods of which some may wait.
    """
    wanted = {name for pod in waiting if not pod["spec"].get("nodeName") for name in _devices(pod)}
    if not wanted:
        return [], ""
    try:
        return _by_owner(cluster.select(POD, everywhere=True), wanted), ""
    except ForbiddenError:
        missing = f"you may not list the pods of other namespaces, which may hold {', '.join(sorted(wanted))} as well"
        return _by_owner(cluster.select(POD), wanted), missing


def _by_owner(pods: Iterable[Manifest], wanted: set[str]) -> list[Holder]:
    found: dict[tuple[str, str, str, str], int] = defaultdict(int)
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if node and pod.get("status", {}).get("phase") not in _HAVE_ENDED:
            for resource, count in _devices(pod).items():
                if resource in wanted:
                    found[node, resource, pod["metadata"]["namespace"], _owner(pod)] += count
    return [Holder(*key, devices) for key, devices in sorted(found.items())]


def _devices(pod: Manifest) -> dict[str, int]:
    """Return how many devices of each kind a pod's containers have together."""
    found: dict[str, int] = defaultdict(int)
    for container in pod["spec"].get("containers", ()):
        for name, count in (container.get("resources", {}).get("limits") or {}).items():
            if "/" in name and (held := int(value_of(str(count)) or 0)):
                found[name] += held
    return found


def _owner(pod: Manifest) -> str:
    metadata = pod["metadata"]
    if pool := (metadata.get("labels") or {}).get(POOL_LABEL):
        return f"pool {pool}"
    controllers = [each for each in metadata.get("ownerReferences") or () if each.get("controller")]
    if not controllers:
        return f"pod {metadata['name']}"
    kind, name = controllers[0]["kind"], str(controllers[0]["name"])
    of_template = "-" + (metadata.get("labels") or {}).get("pod-template-hash", "")
    if kind == "ReplicaSet" and len(of_template) > 1 and name.endswith(of_template):
        return f"Deployment {name.removesuffix(of_template)}"  # which would create another ReplicaSet
    return f"{kind} {name}"
