"""The Kubernetes that the demo and the cluster tests run on. CLUSTER chooses it."""

import os

from tools.console import ToolError, say
from tools.demo.clusters.base import Cluster, Images
from tools.demo.clusters.choice import choose, look
from tools.demo.clusters.current import CurrentCluster
from tools.demo.clusters.kind import KindCluster
from tools.demo.clusters.local import LocalCluster

__all__ = ["Cluster", "Images", "for_demo", "for_tests", "to_remove"]

_KINDS: dict[str, type[Cluster]] = {"kind": KindCluster, "local": LocalCluster, "current": CurrentCluster}


def for_demo() -> Cluster:
    """Return the cluster that the environment variable CLUSTER names, else the one that suits this machine."""
    choice = choose(look(_named(), tuple(_there())))
    say(f"cluster: {choice.name} ({choice.why})")
    return _of_kind(choice.name)


def for_tests() -> Cluster:
    """Return the cluster that CLUSTER names; by default the local one, whatever else exists."""
    return _of_kind(_named() or "local")


def to_remove() -> list[Cluster]:
    """Return the cluster that CLUSTER names, else those that exist."""
    return [_of_kind(name) for name in ([_named()] if _named() else _there())]


def _named() -> str:
    return os.environ.get("CLUSTER", "")


def _there() -> list[str]:
    return [name for name, kind in _KINDS.items() if kind.is_there()]


def _of_kind(name: str) -> Cluster:
    if name not in _KINDS:
        raise ToolError(f"CLUSTER={name}: choose one of {', '.join(_KINDS)}")
    return _KINDS[name]()
