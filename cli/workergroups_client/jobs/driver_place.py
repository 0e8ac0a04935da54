"""Where the driver of a job runs: on Ray's head, or on a node of the pool, whose devices it sees."""

from __future__ import annotations

from dataclasses import dataclass

from ..api_server.cluster import Cluster
from ..errors import NotFoundError, NotRunningError
from ..objects.names import Target, ray_cluster
from ..pods.nodes import node_id
from ..pods.pods import PodContainer, head, nodes_by_address
from ..ray_cluster.ranks import node_addresses
from ..ray_cluster.ray_api import RayApi

# Ray gives each node a resource of its address. As little as possible, so that any number of drivers fit.
_SHARE = 0.001


@dataclass(frozen=True)
class DriverPlace:
    """The head, or a node."""

    cluster: Cluster
    pool: Target
    address: str | None = None
    """The address of the node; ``None`` for the head."""

    @classmethod
    def of(cls, cluster: Cluster, ray: RayApi, pool: Target, node: int | None) -> DriverPlace:
        """Return the node of this number, which `nodes.node_id` explains; without a number, the head.

        Raises:
            NotFoundError: There is no such node; the message lists the existing ones.
            NotRunningError: Ray has lost the node.
        """
        if node is None:
            return cls(cluster, pool)
        address = node_addresses(ray).get(node_id(cluster, ray, pool, node))
        if address is None:
            raise NotRunningError(
                f"Ray has lost node {node} of {pool}, and its bundles are not reserved again yet: workergroups status "
                f"{pool.name} says why"
            )
        return cls(cluster, pool, address)

    @property
    def resources(self) -> dict[str, float]:
        """What the job asks Ray for, so that Ray starts the driver there; nothing for the head."""
        return {} if self.address is None else {f"node:{self.address}": _SHARE}

    def container(self) -> PodContainer:
        """Return the container in which the driver will run.

        Raises:
            NotFoundError: Its pod is not running.
        """
        if self.address is None:
            return head(self.cluster, self.pool)
        found = nodes_by_address(self.cluster, ray_cluster(self.cluster, self.pool)).get(self.address)
        if found is None:
            raise NotFoundError(
                f"the pod of the node with address {self.address} is not running: workergroups status {self.pool.name} "
                f"says why"
            )
        return found
