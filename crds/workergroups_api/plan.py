"""The plan: what the operator wants to exist inside one RayCluster. The agent carries it out and reports back."""

from typing import Any

from workergroups_api.model import ApiModel


class PlannedNode(ApiModel):
    """One entry of a pool's `processesPerNode`: a placement group of that many bundles on one Ray node."""

    node_group: str
    processes: int


class PlannedPool(ApiModel):
    """A pool whose placement groups are to be reserved."""

    name: str
    uid: str
    generation: int
    vendor: str
    nodes: tuple[PlannedNode, ...]
    bundle: dict[str, float]
    max_colocate_count: int


class PlannedSeats(ApiModel):
    """Consecutive bundles of one pool, counted over its nodes in order."""

    pool: str
    start: int
    count: int


class PlannedGroup(ApiModel):
    """A group whose ranks are to run; rank order is the order of `seats`."""

    name: str
    uid: str
    generation: int
    incarnation: int
    seats: tuple[PlannedSeats, ...]
    class_path: str
    init_args: tuple[Any, ...] = ()
    init_kwargs: dict[str, Any] = {}
    config_map: str | None = None
    env: dict[str, str] = {}

    @property
    def world_size(self) -> int:
        """How many ranks the group has."""
        return sum(seats.count for seats in self.seats)


class ClusterPlan(ApiModel):
    """Everything that is to exist inside one RayCluster."""

    cluster: str
    pools: tuple[PlannedPool, ...] = ()
    groups: tuple[PlannedGroup, ...] = ()


class Orders(ApiModel):
    """What the agent's reporter hands to its executor: the plan and the code that it names."""

    plan: ClusterPlan
    # ConfigMap name -> file name -> text. A ConfigMap that is missing is not in here.
    code: dict[str, dict[str, str]] = {}


class Reports(ApiModel):
    """What the executor hands back, by name."""

    pools: dict[str, Any] = {}
    groups: dict[str, Any] = {}
