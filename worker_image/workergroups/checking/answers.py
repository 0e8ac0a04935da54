"""What is asked about a pool's nodes, and what is answered: JSON, so that who asks needs no Ray."""

from __future__ import annotations

from typing import TypedDict

LOOK_SECONDS = 60
"""Within which each node has to say what it has: torch is imported there, perhaps from a file system far away."""
CONNECT_SECONDS = 40
MEASURE_SECONDS = 200
_START_SECONDS = 30


class Question(TypedDict):
    """Which nodes are asked, and for what."""

    pool: str
    node_group: str
    """What Ray calls the pool's nodes."""
    vendor: str
    processes: int
    """On each node."""
    devices: int
    """Of each process."""
    is_reserved: bool
    """Whether each process has its bundle."""
    writable: list[str]
    """Directories in which each node is to be able to write."""
    fabric: bool
    """Whether an all-reduce is wanted too."""


class Adapter(TypedDict):
    """A port of an InfiniBand or RoCE adapter."""

    name: str
    port: int
    interface: str
    """The network interface of it, if it is one too."""
    state: str
    """ACTIVE, DOWN and the like."""
    link: str
    """InfiniBand or Ethernet."""
    rate: str
    is_usable: bool
    """Whether the pod may open it."""
    gids: dict[str, str]
    """The type of each address, by its index."""


class NodeAnswer(TypedDict):
    """What a node has."""

    node: str
    """Its pod."""
    devices: int | None
    """``None`` if it cannot tell."""
    versions: dict[str, str]
    shared_memory: int
    """Bytes."""
    unwritable: dict[str, str]
    """Why it cannot write, by directory."""
    unreachable: dict[str, str]
    """Why it cannot connect, by the other node."""
    adapters: list[Adapter]
    settings: dict[str, str]
    """The variables that tell NCCL which adapters to use."""
    troubles: dict[str, str]
    """What else went wrong, by what was looked at."""


class AllReduce(TypedDict):
    """How fast the pool's processes summed up a tensor."""

    backend: str
    processes: int
    mebibytes: int
    seconds: float
    bus_bandwidth: float
    """What each process sent and received, in GB/s: 2 (n - 1) / n of the tensor's size in that time."""


class Answer(TypedDict):
    """What all nodes say."""

    nodes: list[NodeAnswer]
    silent: dict[str, str]
    """Why there is no answer, by node."""
    all_reduce: AllReduce | None
    not_measured: str | None
    """Why there is no all-reduce."""


def seconds_for(question: Question) -> int:
    """Within which there is an answer."""
    return _START_SECONDS + LOOK_SECONDS + CONNECT_SECONDS + (MEASURE_SECONDS if question["fabric"] else 0)
