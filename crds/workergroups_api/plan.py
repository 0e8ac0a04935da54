"""The plan: what the operator wants to exist inside one RayCluster. The agent carries it out and reports back.

It holds decisions only. What a user wrote about the ranks (class, arguments, environment, code) the agent reads from
the WorkerGroup and its ConfigMap; `PlannedGroup.revision` says which version of it is meant.
"""

from workergroups_api.model import ApiModel
from workergroups_api.retries import Retries


class PlannedPool(ApiModel):
    """A pool, and its placement groups: one for each node, with a bundle for each process."""

    name: str
    uid: str
    # Ray's label of the pool's nodes, `ray.io/node-group`.
    node_group: str
    nodes: int
    processes_per_node: int
    # What each bundle holds, such as {"CPU": 10, "GPU": 1}.
    bundle: dict[str, float]
    vendor: str
    devices_per_process: int
    max_colocate_count: int
    # Without, the nodes are only watched: programs make placement groups of their own.
    reserves: bool = True

    @property
    def world_size(self) -> int:
        """How many bundles the pool has."""
        return self.nodes * self.processes_per_node


class PlannedBundles(ApiModel):
    """Consecutive bundles of one pool, counted over its nodes in order."""

    pool: str
    start: int
    count: int


class PlannedGroup(ApiModel):
    """A group whose ranks are to run; rank order is the order of `bundles`."""

    name: str
    uid: str
    # Which making of the ranks this is, from 1.
    incarnation: int
    # Which version of class, arguments, environment and code it is made from (see `launch`); None while the code
    # is not known.
    revision: str | None = None
    # The same and the bundles: what the operator calls this incarnation's revision. The agent does not look at it.
    made_from: str | None = None
    # The Ray session in which it runs; None while none is known. In another one its ranks are not made.
    session: str | None = None
    # Of launches that were cut short; kept for the operator, the agent does not look at them.
    retries: Retries | None = None
    bundles: tuple[PlannedBundles, ...]

    @property
    def world_size(self) -> int:
        """How many ranks the group has."""
        return sum(bundles.count for bundles in self.bundles)


class ClusterPlan(ApiModel):
    """Everything that is to exist inside one RayCluster."""

    cluster: str
    pools: tuple[PlannedPool, ...] = ()
    groups: tuple[PlannedGroup, ...] = ()

    @property
    def reserved_pools(self) -> tuple[PlannedPool, ...]:
        """The pools that have placement groups."""
        return tuple(pool for pool in self.pools if pool.reserves)
