"""Judge the answers of a pool's nodes: which of them differ from the spec or from each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workergroups.checking.answers import AllReduce, Answer, NodeAnswer
from workergroups_api.vocabulary import Vendor

from .check_findings import CheckFinding, differences, finding
from .fabric import judge_adapters

if TYPE_CHECKING:
    from workergroups_api.resource_pool import ResourcePoolSpec

VERSIONS = ("device", "driver", "CUDA", "ROCm", "NCCL", "torch", "Ray", "Python")
_GIB = 2**30
# The size of a file system is rounded to pages.
_TOLERANCE = 64 * 1024


@dataclass(frozen=True)
class Requirements:
    """The requirements of a pool's spec for its nodes."""

    nodes: int
    processes: int
    """Of each node."""
    vendor: Vendor
    devices: int
    """Of each node."""
    device: str
    """What Ray calls the devices."""
    shared_memory: int | None
    """Bytes; ``None`` for no requirement."""
    writable: tuple[str, ...]
    """Mount paths of the nodes' volumes that are not read-only."""
    is_reserved: bool
    """Whether each process has its bundle."""

    @classmethod
    def of(cls, spec: ResourcePoolSpec) -> Requirements:
        """Return the requirements of a spec."""
        return cls(
            nodes=spec.nodes,
            processes=spec.processes_per_node,
            vendor=spec.accelerator.vendor,
            devices=spec.devices_per_node,
            device=spec.accelerator.ray_name,
            shared_memory=None if spec.shared_memory is None else bytes_of(spec.shared_memory),
            writable=tuple(volume.mount_path for volume in spec.volumes if volume.is_in_nodes and not volume.read_only),
            is_reserved=spec.is_reserved,
        )


def bytes_of(quantity: str) -> int:
    """Parse a quantity as Kubernetes writes it."""
    from kubernetes.utils.quantity import parse_quantity

    return int(parse_quantity(quantity))


def judge(required: Requirements, answer: Answer, *, fabric: bool) -> Iterator[CheckFinding]:
    """Yield a finding for each subject of the check, problem or not."""
    yield _nodes(required, answer)
    nodes = answer["nodes"]
    if nodes:
        if required.devices:
            yield _devices(required, nodes)
        yield from _versions(nodes)
        yield _shared_memory(required, nodes)
        if required.writable:
            yield _volumes(required, nodes)
        if required.nodes > 1:
            yield _connections(nodes)
        if fabric:
            yield judge_adapters(nodes)
    if fabric:
        yield _all_reduce(required, answer["all_reduce"], answer["not_measured"])


def _nodes(required: Requirements, answer: Answer) -> CheckFinding:
    joined = len(answer["nodes"]) + len(answer["silent"])
    wrong = [f"{node} does not answer: {why}" for node, why in sorted(answer["silent"].items())]
    if joined != required.nodes:
        wrong.insert(
            0, f"{joined} of {required.nodes} have joined Ray: workergroups status says what the pool waits for"
        )
    return finding("nodes", wrong, f"{joined} of {required.nodes} have joined Ray and answer")


def _devices(required: Requirements, nodes: Sequence[NodeAnswer]) -> CheckFinding:
    wrong = list(_troubles("devices", nodes)) + [
        f"{each['node']} has {each['devices']} of {required.devices}"
        for each in nodes
        if each["devices"] not in (None, required.devices)
    ]
    if required.vendor is Vendor.OTHER:
        return finding("devices", wrong, "not counted: the check knows devices of NVIDIA and AMD")
    return finding("devices", wrong, f"{required.devices} on each node")


def _versions(nodes: Sequence[NodeAnswer]) -> Iterator[CheckFinding]:
    for name in VERSIONS:
        found = {each["node"]: each["versions"].get(name) for each in nodes}
        wrong = [*_troubles(name, nodes), *differences(found)]
        if wrong or any(found.values()):
            yield finding(name, wrong, str(next(iter(found.values()))))


def _shared_memory(required: Requirements, nodes: Sequence[NodeAnswer]) -> CheckFinding:
    sizes = {each["node"]: each["shared_memory"] for each in nodes}
    if required.shared_memory is None:
        # Nodes with different memory may give different shares of it, so a difference is no problem.
        written = {node: _gib(size) for node, size in sizes.items()}
        return finding("/dev/shm", [], "; ".join(differences(written)) or next(iter(written.values())))
    wrong = [
        f"{node} has {_gib(size)} of {_gib(required.shared_memory)}: it cannot exceed the memory limit of the pod"
        for node, size in sizes.items()
        if size < required.shared_memory - _TOLERANCE
    ]
    return finding("/dev/shm", wrong, _gib(required.shared_memory))


def _volumes(required: Requirements, nodes: Sequence[NodeAnswer]) -> CheckFinding:
    wrong = [
        f"{each['node']} cannot write to {directory}: {why}"
        for each in nodes
        for directory, why in sorted(each["unwritable"].items())
    ]
    return finding("volumes", wrong, f"each node can write to {', '.join(required.writable)}")


def _connections(nodes: Sequence[NodeAnswer]) -> CheckFinding:
    wrong = [
        f"{each['node']} does not reach {other}: {why}"
        for each in nodes
        for other, why in sorted(each["unreachable"].items())
    ]
    return finding("connections", wrong, "each node that answers reaches each other one")


def _all_reduce(required: Requirements, measured: AllReduce | None, why_not: str | None) -> CheckFinding:
    if measured is None:
        wrong = [f"not measured: {why_not}"] if why_not else []
        return finding("all-reduce", wrong, "nothing to measure with one process")
    how = f"{measured['backend']}, {measured['processes']} processes, {measured['mebibytes']} MiB"
    said = f"{measured['bus_bandwidth']:.2f} GB/s bus bandwidth ({how})"
    is_on_devices = required.devices and required.vendor is not Vendor.OTHER
    wrong = [f"{said}: torch sees no devices"] if is_on_devices and measured["backend"] == "gloo" else []
    return finding("all-reduce", wrong, said)


def _troubles(subject: str, nodes: Sequence[NodeAnswer]) -> Iterator[str]:
    return (f"{each['node']}: {each['troubles'][subject]}" for each in nodes if subject in each["troubles"])


def _gib(size: int) -> str:
    return f"{size / _GIB:.3g} GiB"
