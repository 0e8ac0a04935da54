"""Questions about a pool's nodes and their answers, as JSON, so that the caller needs no Ray."""

from __future__ import annotations

from typing import TypedDict

LOOK_SECONDS = 60
"""Each node must answer within this time: it imports torch, perhaps from a remote file system."""
CONNECT_SECONDS = 40
MEASURE_SECONDS = 200
_START_SECONDS = 30


class Question(TypedDict):
    """Which nodes to check, and for what."""

    pool: str
    node_group: str
    """The KubeRay worker group of the pool's nodes."""
    nodes: int
    """How many nodes the pool should have."""
    node_ids: list[str] | None
    """The Ray nodes to ask; ``None`` for all nodes of the pool."""
    vendor: str
    processes: int
    """Processes on each node."""
    devices: int
    """Devices of each process."""
    device: str
    """What Ray calls them."""
    is_reserved: bool
    """Whether the pool reserves a bundle for each process."""
    shared_memory: int | None
    """Bytes that each node must have; ``None`` for no requirement."""
    placement_name: str
    """The beginning of the names of placement groups that an all-reduce needs; empty for groups without names."""
    writable: list[str]
    """Directories that must be writable on each node."""
    fabric: bool
    """Whether to measure an all-reduce, too."""


class Adapter(TypedDict):
    """A port of an InfiniBand or RoCE adapter."""

    name: str
    port: int
    interface: str
    """The name of its network interface, if it has one."""
    state: str
    """ACTIVE, DOWN and the like."""
    link: str
    """InfiniBand or Ethernet."""
    rate: str
    is_usable: bool
    """Whether the pod may open it."""
    gids: dict[str, str]
    """The type of each GID, by index."""


class NodeAnswer(TypedDict):
    """What one node has."""

    node: str
    """The node's pod."""
    devices: int | None
    """``None`` if the node cannot count them, as for vendors other than NVIDIA and AMD."""
    versions: dict[str, str]
    shared_memory: int
    """Bytes."""
    unwritable: dict[str, str]
    """Why a directory is not writable, by directory."""
    unreachable: dict[str, str]
    """Why another node cannot be reached, by node."""
    adapters: list[Adapter]
    settings: dict[str, str]
    """What NCCL is told, by variables and files: names that begin with NCCL_."""
    troubles: dict[str, str]
    """What else went wrong, by subject."""


class AllReduce(TypedDict):
    """How fast the pool's processes have summed up a tensor."""

    backend: str
    processes: int
    mebibytes: int
    seconds: float
    bus_bandwidth: float
    """What each process sent and received, in GB/s: 2 (n - 1) / n of the tensor's size in that time."""


class Answer(TypedDict):
    """The answers of all nodes."""

    nodes: list[NodeAnswer]
    silent: dict[str, str]
    """Why a node did not answer, by node."""
    all_reduce: AllReduce | None
    not_measured: str | None
    """Why no all-reduce was measured."""


def seconds_for(question: Question) -> int:
    """Return the seconds within which the question is answered."""
    return _START_SECONDS + LOOK_SECONDS + CONNECT_SECONDS + (MEASURE_SECONDS if question["fabric"] else 0)
