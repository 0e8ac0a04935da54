"""The local cluster: three real nodes on this machine, without a container engine. See tools/local_cluster/."""

import json
import os
import sys
from collections.abc import Sequence
from types import MappingProxyType

from tools.console import run
from tools.demo.clusters.base import TEST_IMAGES, Cluster, Images
from tools.local_cluster.layout import STATE


class LocalCluster(Cluster):
    """`python3 -m tools.local_cluster`, with its own kubectl and helm."""

    operator_nodes = MappingProxyType({"workergroups.dev/node": "plain"})

    @classmethod
    def is_there(cls) -> bool:
        """Return whether its directory exists, which is removed last."""
        return STATE.exists()

    def start(self) -> None:
        """Start the cluster, unless it runs."""
        _local_cluster("up", "--build-images")

    def provide_images(self, vendors: Sequence[str]) -> Images:
        """Build what changed; nodes receive only the layers that they lack. A vendor's node has its name."""
        tags = json.loads(_local_cluster("build-images"))
        images = Images(operator=tags["workergroups-operator"], worker=tags["workergroups-worker"])
        _local_cluster("load-image", images.operator, "plain", *vendors)
        _local_cluster("load-image", images.worker, "plain", *vendors)
        return images

    def provide_test_images(self) -> dict[str, str]:
        """Build and load them like the other images."""
        tags = json.loads(_local_cluster("build-images", "--for-tests"))
        images = {variable: tags[name] for variable, name in TEST_IMAGES.items()}
        for reference in images.values():
            _local_cluster("load-image", reference, "plain", "nvidia")  # a test restarts devices with another image
        return images

    def environment(self) -> dict[str, str]:
        """Return the administrator's kubeconfig, and the directory of kubectl and helm."""
        binaries = _local_cluster("bin").strip()
        return {"KUBECONFIG": _local_cluster("kubeconfig").strip(), "PATH": f"{binaries}:{os.environ['PATH']}"}

    def remove(self) -> None:
        """Stop it; no process, mount or bridge remains. Binaries and images stay in the user's cache."""
        _local_cluster("down")


def _local_cluster(*arguments: str) -> str:
    return run([sys.executable, "-m", "tools.local_cluster", *arguments], show_progress=True)
