"""What the demo needs from a cluster."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

# Images in the role of users' own: the variable that names each to the cluster tests, and its name.
TEST_IMAGES = {"OLDEST_RAY_IMAGE": "workergroups-oldest-ray", "TOO_OLD_RAY_IMAGE": "workergroups-too-old-ray"}


@dataclass(frozen=True)
class Images:
    """References under which the cluster's nodes find the two images."""

    operator: str
    worker: str


class Cluster(ABC):
    """A Kubernetes cluster with KubeRay, and with real or pretended accelerators."""

    # Labels of the nodes that have the operator's image; empty for all nodes.
    operator_nodes: Mapping[str, str] = MappingProxyType({})

    @classmethod
    def is_there(cls) -> bool:
        """Return whether a cluster of the demo or of the tests exists on this machine."""
        return False

    @abstractmethod
    def start(self) -> None:
        """Start the cluster, unless it runs."""

    @abstractmethod
    def provide_images(self, vendors: Sequence[str]) -> Images:
        """Build the images if necessary, and load them to nodes without taints or with these vendors' devices."""

    @abstractmethod
    def provide_test_images(self) -> dict[str, str]:
        """Build the users' images for the cluster tests, and load them to nodes without accelerators; by variable."""

    @abstractmethod
    def environment(self) -> dict[str, str]:
        """Return the variables that kubectl and helm need to reach it, which a user must export, too."""

    @abstractmethod
    def remove(self) -> None:
        """Remove everything that the demo and the tests created."""
