"""What the demo needs of a cluster."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

# Images that stand for users' own: the variable that tells the cluster tests of each, and its name.
TEST_IMAGES = {"OLDEST_RAY_IMAGE": "workergroups-oldest-ray", "TOO_OLD_RAY_IMAGE": "workergroups-too-old-ray"}


@dataclass(frozen=True)
class Images:
    """References under which the cluster's nodes find the two images."""

    operator: str
    worker: str


class Cluster(ABC):
    """A Kubernetes with KubeRay, and with accelerators or what passes for them."""

    # Labels of the nodes that have the operator's image; none for all nodes.
    operator_nodes: Mapping[str, str] = MappingProxyType({})

    @classmethod
    def is_there(cls) -> bool:
        """Whether the demo or the tests have made one on this machine and it has not been removed."""
        return False

    @abstractmethod
    def start(self) -> None:
        """Bring it up, or find it running."""

    @abstractmethod
    def provide_images(self, vendors: Sequence[str]) -> Images:
        """Build the images if need be, and bring them to the nodes that take any pod or have these vendors' devices."""

    @abstractmethod
    def provide_test_images(self) -> dict[str, str]:
        """Build images of users for the cluster tests, and bring them to nodes without accelerators; by variable."""

    @abstractmethod
    def environment(self) -> dict[str, str]:
        """What kubectl and helm need to reach it; the same a user has to export."""

    @abstractmethod
    def remove(self) -> None:
        """Take away all that the demo and the tests brought."""
