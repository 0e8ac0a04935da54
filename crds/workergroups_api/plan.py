"""The plan: what should exist inside one RayCluster. The operator writes it; the agent carries it out and reports back.

The plan holds decisions only. The agent reads what the user wrote about the ranks (class, arguments, environment, code)
from the WorkerGroup and its ConfigMap; `PlannedGroup.launch_revision` says which version the plan is for.
"""

from typing import Annotated

from pydantic import Field

from workergroups_api.bounded_text import Term
from workergroups_api.failure_policy import RestartHistory
from workergroups_api.model import WHOLE, ApiModel
from workergroups_api.retries import Retries
from workergroups_api.run import RunStatus
from workergroups_api.vocabulary import Preflight

# The largest pool has this many nodes, with this many bundles in all.
MAX_POOL_NODES = 512
MAX_NODE_PROCESSES = 64
MAX_POOL_BUNDLES = MAX_POOL_NODES * MAX_NODE_PROCESSES
# Of a group: its ranks, and the entries of `spec.pools`.
MAX_RANKS = MAX_POOL_BUNDLES
MAX_PARTS = 16


class PlannedPreflight(ApiModel):
    """What the agent checks on the nodes of a pool before groups are launched there."""

    level: Preflight
    # Bytes that each node must have; None for no requirement.
    shared_memory: int | None = None
    # Directories that must be writable on each node.
    writable: tuple[str, ...] = ()


# Of how many ranks the plan and the status remember that they were recreated alone.
MAX_BIRTHS = 256


class PlannedPool(ApiModel):
    """A pool, and its placement groups: one for each node, with a bundle for each process."""

    name: str
    uid: str
    # Ray's label of the pool's nodes, `ray.io/node-group`.
    node_group: str
    # The generation of the spec from which this was planned.
    generation: int | None = None
    # While the pool shrinks, those are more than `spec.nodes` that groups still use.
    nodes: Annotated[int, Field(le=MAX_POOL_NODES)]
    # The nodes that have had their bundles: their bundles are reserved again without those that the pool grows by, and
    # drivers get these. 0 until all have had them for the first time.
    settled: int = 0
    processes_per_node: Annotated[int, Field(le=MAX_NODE_PROCESSES)]
    # What each bundle holds, such as {"CPU": 10, "GPU": 1}. Ray calls the devices GPU or NPU.
    bundle: dict[str, float]
    vendor: str
    devices_per_process: int
    max_colocate_count: int
    # If not, the agent only watches the nodes: programs create their own placement groups.
    reserves: bool = True
    # Whether its pods are being deleted, since the pool is suspended.
    gives_back: bool = False
    # How long ranks may take to answer before they end.
    notice_seconds: int = 30
    # Pod -> its domain of the pool's topology, "" if it is in none. Nodes of other pods wait for the next plan. None if
    # the topology does not matter, or is unknown: then the nodes are numbered by their pods' names.
    domains: dict[str, str] | None = None
    # None if nothing is checked, also while nodes are being restarted: afterwards all are checked again.
    preflight: PlannedPreflight | None = None

    @property
    def world_size(self) -> int:
        """The number of bundles of the pool."""
        return self.nodes * self.processes_per_node

    @property
    def device(self) -> str | None:
        """What Ray calls the devices of the bundles; None if they have none."""
        return next((name for name in self.bundle if name != "CPU"), None)


class PlannedBundles(ApiModel):
    """Consecutive bundles of one pool, counted over its nodes in order."""

    pool: Annotated[Term, Field(description="Name of the pool.")]
    uid: Annotated[
        Term | None, Field(description="UID of the pool: one that is deleted and created again is another pool.")
    ] = None
    start: Annotated[int, Field(ge=0, le=MAX_POOL_BUNDLES - 1, description="The first bundle, counted from 0.")]
    count: Annotated[int, Field(ge=1, le=MAX_POOL_BUNDLES, description="Number of bundles. Each bundle has one rank.")]

    @property
    def end(self) -> int:
        """The bundle after the last one."""
        return self.start + self.count

    def overlaps(self, other: "PlannedBundles") -> bool:
        """Return whether a bundle is among both."""
        return self.pool == other.pool and self.start < other.end and other.start < self.end

    def nodes(self, per_node: int) -> range:
        """Return the nodes that have these bundles, given how many each node has."""
        return range(self.start // per_node, (self.end - 1) // per_node + 1)


class IncarnationRecord(ApiModel):
    """What the operator remembers of an incarnation, in the group's status and in the plan.

    The plan has it too because a decision and its record must be one write: if statuses cannot be written, a group that
    fails again and again would otherwise be restarted without pause and end.
    """

    revision: Annotated[
        Term | None,
        Field(
            description="Digest of what this incarnation was created from: `worker` or `roles`, `run`, `env`, "
            "`envFrom`, `debug`, the content of the code's ConfigMap, the annotation workergroups.dev/restarted-at, "
            "its bundles, and of each of its pools the UID and the last restart."
        ),
    ] = None
    environment: Annotated[
        Term | None,
        Field(
            description="Digest of the values that `env[].valueFrom` and `envFrom` have in this incarnation, with a "
            "secret key. Absent if there are none, or if they are not known yet."
        ),
    ] = None
    session: Annotated[Term | None, Field(description="The Ray session in which this incarnation runs.")] = None
    bundles: Annotated[
        tuple[PlannedBundles, ...] | None,
        Field(
            max_length=MAX_PARTS,
            description="The bundles of this incarnation, in rank order.",
            json_schema_extra=WHOLE,
        ),
    ] = None
    retries: Annotated[
        Retries | None, Field(description="Retries of launches that were cut short. Absent if the last launch was not.")
    ] = None
    restarts: Annotated[
        RestartHistory | None, Field(description="Restarts after failures. Absent if there was no failure.")
    ] = None
    run: Annotated[
        RunStatus | None, Field(description="The run of the method that `spec.run` names. Absent without `spec.run`.")
    ] = None
    births: Annotated[
        dict[int, int] | None,
        Field(
            max_length=MAX_BIRTHS,
            description="The ranks of this incarnation that were recreated alone, each with the number of the latest "
            "such restart: of at most 256 ranks. Absent if there are none.",
        ),
    ] = None


class PlannedGroup(IncarnationRecord):
    """A group whose ranks should run. Ranks are numbered in the order of `bundles`.

    Of the record, the agent reads environment, session, births and bundles, and whether there is a run. In other
    sessions it creates no ranks. A rank may have a later birth than the record says.
    """

    name: str
    uid: str
    # Counts the sets of ranks that the group has had, from 1.
    incarnation: int
    # The version of class, arguments, environment and code (see `launch`); None while the code is not known, and while
    # a pool of the group is restarted: then the agent ends the ranks, and launches none.
    launch_revision: str | None = None
    # Which rank failed and how, if the latest ranks were created after a failure. The agent tells drivers.
    cause: str | None = None
    # Whether the ranks that failed stay as they are, by the failure policy. The agent tells drivers, which may be
    # waiting for others.
    is_final: bool | None = None
    # A call that is in flight for longer counts as a failure; None if none does.
    hang_seconds: int | None = None
    # Empty if the group is suspended: then it has no session, and this incarnation begins when the group is resumed.
    # Empty also if the run has ended.
    bundles: Annotated[tuple[PlannedBundles, ...], Field(max_length=MAX_PARTS)]

    @property
    def world_size(self) -> int:
        """The number of ranks of the group."""
        return sum(bundles.count for bundles in self.bundles)

    @property
    def last_birth(self) -> int:
        """The latest restart of single ranks that this is planned for; 0 if there was none."""
        return max((self.births or {}).values(), default=0)

    def birth_of(self, rank: int) -> int:
        """Return the birth that the rank must have at least."""
        return (self.births or {}).get(rank, 0)


class ClusterPlan(ApiModel):
    """Everything that should exist inside one RayCluster."""

    cluster: str
    pools: tuple[PlannedPool, ...] = ()
    groups: tuple[PlannedGroup, ...] = ()
    # Whether the pods of suspended and deleted pools stay for now, since Kueue runs the RayCluster as it was admitted.
    pods_stay: bool | None = None

    @property
    def reserved_pools(self) -> tuple[PlannedPool, ...]:
        """The pools that have placement groups."""
        return tuple(pool for pool in self.pools if pool.reserves)

    @property
    def checked_pools(self) -> frozenset[str]:
        """The UIDs of the pools whose nodes are checked before groups are launched there."""
        return frozenset(pool.uid for pool in self.pools if pool.preflight is not None)
