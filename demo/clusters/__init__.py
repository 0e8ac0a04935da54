"""The Kubernetes that the demo and the cluster tests run on. CLUSTER chooses it."""

import os

from demo.clusters.base import Cluster, Images
from demo.clusters.current import CurrentCluster
from demo.clusters.kind import KindCluster
from demo.clusters.local import LocalCluster
from demo.console import DemoError

__all__ = ["Cluster", "Images", "chosen"]

_KINDS: dict[str, type[Cluster]] = {"local": LocalCluster, "kind": KindCluster, "current": CurrentCluster}


def chosen() -> Cluster:
    """The cluster that the environment variable CLUSTER names; the local one by default."""
    name = os.environ.get("CLUSTER") or "local"
    if name not in _KINDS:
        raise DemoError(f"CLUSTER={name}: choose one of {', '.join(_KINDS)}")
    return _KINDS[name]()
