"""Check whether all nodes tell NCCL the same, and whether it finds the InfiniBand or RoCE adapters that they name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .answers import Adapter, NodeAnswer
from .findings import CheckFinding, differences, finding

_SUBJECT = "adapters"
# What may differ: it names parts of a node or files there, or only changes what is logged.
_OF_ONE_NODE = re.compile("NCCL_(CONF_FILE|DEBUG.*|HOSTID|IB_GID_INDEX|IB_HCA|SOCKET_IFNAME|TOPO_FILE)")


@dataclass(frozen=True)
class Choice:
    """The value of NCCL_IB_HCA: prefixes of names such as ``mlx5_0,mlx5_1:1``; ``=`` for names, ``^`` to exclude."""

    names: tuple[str, ...]
    is_exact: bool
    excludes: bool

    @classmethod
    def read(cls, text: str) -> Choice:
        """Parse the value; an empty one leaves the choice to NCCL."""
        excludes, rest = text.startswith("^"), text.removeprefix("^")
        names = tuple(name for name in rest.removeprefix("=").split(",") if name)
        return cls(names, rest.startswith("="), excludes)

    @property
    def is_asked_for(self) -> bool:
        """Whether the value names the adapters to use."""
        return bool(self.names) and not self.excludes

    def has(self, adapter: Adapter) -> bool:
        """Return whether NCCL may use the adapter."""
        return not self.names or self.excludes != any(self._is(name, adapter) for name in self.names)

    def missing(self, adapters: Sequence[Adapter]) -> list[str]:
        """Return the names that match none of the adapters."""
        if not self.is_asked_for:
            return []
        return [name for name in self.names if not any(self._is(name, adapter) for adapter in adapters)]

    def _is(self, name: str, adapter: Adapter) -> bool:
        device, _, port = name.partition(":")
        fits = adapter["name"] == device if self.is_exact else adapter["name"].startswith(device)
        return fits and port in ("", str(adapter["port"]))


def judge_settings(nodes: Sequence[NodeAnswer]) -> CheckFinding:
    """Compare what the nodes tell NCCL: ranks that disagree on a transport wait for each other, or use a slow one."""
    names = sorted({name for node in nodes for name in node["settings"] if not _OF_ONE_NODE.fullmatch(name)})
    found = {name: {node["node"]: node["settings"].get(name) for node in nodes} for name in names}
    wrong = [f"{name}: {difference}" for name, values in found.items() for difference in differences(values)]
    common = ", ".join(f"{name}={nodes[0]['settings'].get(name)}" for name in names)
    return finding("NCCL settings", wrong, common or "none")


def judge_adapters(nodes: Sequence[NodeAnswer]) -> CheckFinding:
    """Compare the adapters of each node with NCCL_IB_HCA and NCCL_IB_GID_INDEX there."""
    wrong = [problem for node in nodes for problem in _problems(node)]
    listed = {node["node"]: _listed(node) for node in nodes}
    wrong += differences(listed)
    if any(node["settings"].get("NCCL_IB_DISABLE", "0") != "0" for node in nodes):
        return finding(_SUBJECT, wrong, "switched off by NCCL_IB_DISABLE")
    return finding(_SUBJECT, wrong, next(iter(listed.values())) or "no InfiniBand and no RoCE: NCCL uses TCP")


def _problems(node: NodeAnswer) -> Iterator[str]:
    settings, name = node["settings"], node["node"]
    if settings.get("NCCL_IB_DISABLE", "0") != "0":
        return
    choice = Choice.read(settings.get("NCCL_IB_HCA", ""))
    there = ", ".join(sorted({adapter["name"] for adapter in node["adapters"]})) or "none"
    for missing in choice.missing(node["adapters"]):
        yield f"{name} has no {missing}, which NCCL_IB_HCA names; it has {there}"
    for adapter in filter(choice.has, node["adapters"]):
        if choice.is_asked_for:
            yield from (f"{name}: {_called(adapter)} {trouble}" for trouble in _troubles(adapter))
        if adapter["is_usable"] and (index := settings.get("NCCL_IB_GID_INDEX")):
            yield from (f"{name}: {_called(adapter)} {trouble}" for trouble in _gid_troubles(adapter, index))


def _troubles(adapter: Adapter) -> Iterator[str]:
    if adapter["state"] != "ACTIVE":
        yield f"is {adapter['state'] or 'in an unknown state'}"
    if not adapter["is_usable"]:
        yield "cannot be opened by the pod: add your RDMA device plugin's resource to the pool's resources"


def _gid_troubles(adapter: Adapter, index: str) -> Iterator[str]:
    if index not in adapter["gids"]:
        there = ", ".join(adapter["gids"]) or "none"
        yield f"has no GID {index}, which NCCL_IB_GID_INDEX names; it has {there}"
    elif adapter["link"] == "Ethernet" and "v2" not in adapter["gids"][index]:
        yield f"has as GID {index} an address of {adapter['gids'][index]}, which is not routed: choose one of RoCE v2"


def _listed(node: NodeAnswer) -> str:
    """Describe the adapters of a node; empty if it has none."""
    return ", ".join(map(_described, node["adapters"]))


def _described(adapter: Adapter) -> str:
    interface = f" {adapter['interface']}" if adapter["interface"] else ""
    limits = "" if adapter["is_usable"] else " (the pod cannot open it)"
    return f"{_called(adapter)}{interface} {adapter['link']} {adapter['rate']} {adapter['state']}{limits}"


def _called(adapter: Adapter) -> str:
    return f"{adapter['name']}:{adapter['port']}"
