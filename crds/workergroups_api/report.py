"""What the agent reports of Ray: `status.reservation` of a pool, `status.ranks` of a group. Only it writes these.

Each report names the Ray session in which it was observed, and a group's report also the incarnation. A report of
another session or another incarnation does not count.

`DeadRank` is in no status: the agent keeps it with the rank's last lines, and the command line shows it.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, Field

from workergroups_api.bounded_text import Message, Pods, Ranges, Term
from workergroups_api.launch import digest
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP
from workergroups_api.model import WHOLE, ApiModel, list_map, schema

# The part of a status that the agent writes.
AGENT_FIELDS = {RESOURCE_POOL: "reservation", WORKER_GROUP: "ranks"}
MAX_NODES = 16
MAX_FAILURES = 10
MAX_PAUSES = 64
MAX_MODELS = 8
# Characters of the last words of a rank.
MAX_LAST_WORDS = 256
MAX_DRIVER_JOBS = 5

Birth = Annotated[
    int | None,
    Field(
        description="With which of the group's restarts the rank was created alone. Absent if it was created with its "
        "incarnation."
    ),
]
Session = Annotated[Term | None, Field(description="The Ray session in which this was observed.")]


class NodeReport(ApiModel):
    """A node of a pool whose bundles are not all reserved."""

    index: Annotated[int, Field(description="Number of the node in the pool, from 0.")]
    state: Annotated[
        Term,
        Field(
            description="Waiting: no Ray node has joined for it. Reserving: Ray has not reserved all of its bundles."
        ),
    ]
    pod: Annotated[Term | None, Field(description="Pod of the node, once it has joined Ray.")] = None
    message: Annotated[Message | None, Field(description="What is wrong. Absent if nothing is.")] = None


class PreflightReport(ApiModel):
    """How far the check of a pool's nodes is."""

    level: Annotated[Term, Field(description="What is checked: Basic or Fabric.")]
    state: Annotated[
        Term,
        Field(
            description="Waiting: nodes or bundles are missing, or the executor has not begun. Checking, Passed. "
            "Failed: something is wrong; the check is repeated."
        ),
    ]
    passed: Annotated[
        Ranges,
        Field(
            description="Nodes that have passed, as ranges. Empty if the pool has `reservation: None`: its nodes have "
            "no numbers."
        ),
    ] = ""
    message: Annotated[
        Message | None,
        Field(description="What is wrong and on which node, what the check waits for, or what was measured."),
    ] = None


DriverJobs = Annotated[
    tuple[Term, ...],
    Field(
        max_length=MAX_DRIVER_JOBS,
        description="The first five of these drivers: the submission ids of their jobs, or else Ray's own ids.",
        json_schema_extra=schema(x_kubernetes_list_type="atomic"),
    ),
]


class PoolReport(ApiModel):
    """A pool's placement groups, and the drivers on its Ray cluster, as Ray's GCS has them."""

    session: Session = None
    head: Annotated[
        Term | None,
        Field(
            description="Ray's id of the head's node: another one each time that a head starts, also in one session."
        ),
    ] = None
    generation: Annotated[
        int | None, Field(description="The generation of the spec that the observed plan was made from.")
    ] = None
    planned_nodes: Annotated[
        int | None,
        Field(
            description="How many nodes the observed plan has: `spec.nodes`, or more while groups hold nodes that the "
            "pool is about to give up."
        ),
    ] = None
    joined_nodes: Annotated[int, Field(description="Number of Ray nodes of the pool that are alive.")] = 0
    joined_pods: Annotated[Term | None, Field(description="Digest of the names of these nodes' pods.")] = None
    reserved_nodes: Annotated[int, Field(description="Number of nodes whose bundles are all reserved.")] = 0
    reserved: Annotated[Ranges, Field(description="These nodes as ranges of their numbers, such as `0-510`.")] = ""
    pods: Annotated[
        Pods | None,
        Field(
            description="The pods of these nodes in their order, with braces as in Bash, such as "
            "`a-worker-{x7k2p,9fj2a}`. If the pool has `reservation: None`: the pods of all nodes that have joined Ray."
        ),
    ] = None
    leaving: Annotated[
        Ranges,
        Field(
            description="Nodes beyond the planned ones whose bundles are not released yet, as ranges. Their pods stay "
            "until they are."
        ),
    ] = ""
    nodes: Annotated[
        tuple[NodeReport, ...],
        Field(
            max_length=MAX_NODES,
            description="The first nodes whose bundles are not all reserved.",
            json_schema_extra=dict(list_map("index")),
        ),
    ] = ()
    message: Annotated[Message | None, Field(description="Why bundles cannot be reserved. Absent if they can.")] = None
    drivers: Annotated[
        int | None,
        Field(
            description="Number of drivers that are connected to the pool's Ray cluster: programs that use Ray, such "
            "as jobs, except for those of WorkerGroups and of Ray itself. Absent if the agent does not count them."
        ),
    ] = None
    driver_jobs: DriverJobs = ()
    last_driver_end: Annotated[
        AwareDatetime | None,
        Field(
            description="When the last of the drivers that have ended in this session did so, by the clock of the "
            "head. Absent if none has."
        ),
    ] = None
    preflight: Annotated[
        PreflightReport | None, Field(description="How far the check of the nodes is. Absent without `spec.preflight`.")
    ] = None


class RankFailure(ApiModel):
    """Why a rank died."""

    rank: Annotated[int, Field(description="The rank within its group.")]
    birth: Birth = None
    reason: Annotated[
        Term,
        Field(
            description="What ended the rank: ConstructorFailed, ProcessExited, ProcessDied, OutOfMemory, NodeLost, "
            "Preempted, Removed or OwnerDied. RunFailed: the method that the group runs raised an exception."
        ),
    ]
    message: Annotated[Message, Field(description="The last line of the exception, or what Ray reports.")]
    pod: Annotated[Term | None, Field(description="Pod in which the rank ran.")] = None


class DeadRank(RankFailure):
    """A rank of one incarnation of a group that died, and when."""

    uid: Annotated[Term, Field(description="The group's UID.")]
    incarnation: Annotated[int, Field(description="The incarnation of the group that the rank belonged to.")]
    died: Annotated[datetime, Field(description="When the agent saw that it had died, by the agent's clock.")]

    @property
    def key(self) -> tuple[str, int, int]:
        """What tells it from all other dead ranks: UID, incarnation and rank."""
        return self.uid, self.incarnation, self.rank


class LastWords(ApiModel):
    """The end of what a rank printed that died, in this incarnation or in an earlier one."""

    incarnation: Annotated[int, Field(description="The incarnation that the rank belonged to.")]
    rank: Annotated[int, Field(description="The rank within its group.")]
    birth: Birth = None
    text: Annotated[str, Field(max_length=MAX_LAST_WORDS, description="The end of its last lines.")]


class RankPause(ApiModel):
    """Where a rank is paused for a debugger."""

    rank: Annotated[int, Field(description="The rank within its group.")]
    pod: Annotated[Term | None, Field(description="Pod in which the rank runs.")] = None
    where: Annotated[
        Message,
        Field(description="File, line and function at which the rank is paused, and the exception if one was raised."),
    ]
    since: Annotated[datetime, Field(description="When the rank paused, by the clock of its node.")]
    attached: Annotated[bool, Field(description="Whether a debugger is attached to the rank.")] = False


class HangReport(ApiModel):
    """A call that has been in flight for longer than the group's `hangSeconds`."""

    method: Annotated[Term, Field(description="The method that was called.")]
    since: Annotated[AwareDatetime, Field(description="When the call began, by the clock of a rank's node.")]
    ranks: Annotated[Ranges, Field(description="Ranks on which the call has not returned, as ranges.")]
    suspects: Annotated[
        Ranges,
        Field(
            description="The ranks that the others seem to wait for, as ranges. Empty if the stacks of all ranks are "
            "alike, or if nothing sets some ranks apart."
        ),
    ] = ""
    pod: Annotated[
        Term | None, Field(description="Pod of the first suspect, or else of the first rank that has not returned.")
    ] = None
    message: Annotated[Message, Field(description="What the ranks do, by their Python stacks.")]
    birth: Annotated[
        int | None,
        Field(description="The latest restart of single ranks when the call was seen. Absent if there was none."),
    ] = None


class OldestCall(ApiModel):
    """The call that has been in flight for longest, if that is a minute or more."""

    method: Annotated[Term, Field(description="The method that was called.")]
    rank: Annotated[int, Field(description="The rank on which it has not returned.")]
    since: Annotated[AwareDatetime, Field(description="When it began there, by the clock of the rank's node.")]


class RunReport(ApiModel):
    """On how many ranks the method of the group's run has begun, and on how many it has returned."""

    begun: Annotated[int, Field(description="Number of ranks on which the method has been called.")] = 0
    returned: Annotated[int, Field(description="Number of ranks on which it has returned.")] = 0


class WeightsReport(ApiModel):
    """Which weights of a model the ranks have published or received last, with the library's `Weights`."""

    model: Annotated[Term, Field(description="The model's name.")]
    version: Annotated[int, Field(description="The newest version that a rank has.")]
    behind: Annotated[
        Ranges, Field(description="Ranks that still have an older version after five seconds or more, as ranges.")
    ] = ""
    different: Annotated[
        Ranges,
        Field(
            description="Ranks whose weights differ from those of most of their replicas, as ranges. If none are in "
            "the majority, all of these replicas."
        ),
    ] = ""


class GroupReport(ApiModel):
    """A group's rank actors, as Ray's GCS has them."""

    session: Session = None
    incarnation: Annotated[int, Field(description="The incarnation that was observed.")] = 0
    state: Annotated[
        Term,
        Field(
            description="State of this incarnation's launch: WaitingForPools, WaitingForCode, WaitingForEnvironment, "
            "WaitingForRanks, "
            "Launching, Launched, LaunchFailed, or LaunchInterrupted if it was cut short and created only some of "
            "the ranks. If the group is suspended, or its run has ended: Suspending while ranks still run, then "
            "Suspended."
        ),
    ] = "WaitingForPools"
    birth: Annotated[
        int | None,
        Field(
            description="The latest restart of single ranks that the observed plan has. Absent if there was none. "
            "What is reported of ranks that were recreated later does not count."
        ),
    ] = None
    code: Annotated[
        Term | None,
        Field(description="Digest of what the code's ConfigMap holds now. Absent if there is no such ConfigMap."),
    ] = None
    created: Annotated[
        int, Field(description="Number of ranks whose actors exist, whether or not their constructors have returned.")
    ] = 0
    ready_count: Annotated[int, Field(description="Number of ranks whose constructors have returned.")] = 0
    ready: Annotated[Ranges, Field(description="These ranks as ranges, such as `0-2,5`.")] = ""
    message: Annotated[
        Message | None, Field(description="Why the launch failed, or what it waits for. Absent if it does neither.")
    ] = None
    failed: Annotated[Ranges, Field(description="The ranks that died or on which the run failed, as ranges.")] = ""
    failures: Annotated[
        tuple[RankFailure, ...],
        Field(
            max_length=MAX_FAILURES,
            description="The ranks that died, or on which the group's run failed; the first ten.",
            json_schema_extra=dict(list_map("rank")),
        ),
    ] = ()
    last_words: Annotated[
        tuple[LastWords, ...],
        Field(
            max_length=MAX_FAILURES,
            description="What the ten ranks printed last that died most recently.",
            json_schema_extra=WHOLE,
        ),
    ] = ()
    paused: Annotated[Ranges, Field(description="Ranks that are paused for a debugger, as ranges.")] = ""
    pauses: Annotated[
        tuple[RankPause, ...],
        Field(
            max_length=MAX_PAUSES,
            description="Where these ranks are paused; the first 64.",
            json_schema_extra=dict(list_map("rank")),
        ),
    ] = ()
    oldest_call: Annotated[
        OldestCall | None,
        Field(
            description="The call that has been in flight for longest. Absent if none has been for a minute, or if a "
            "rank is paused."
        ),
    ] = None
    hang: Annotated[
        HangReport | None, Field(description="A call that hangs, and the ranks that are suspect. Absent if none does.")
    ] = None
    run: Annotated[
        RunReport | None, Field(description="How far the group's run is. Absent if `spec.run` is not set.")
    ] = None
    weights: Annotated[
        tuple[WeightsReport, ...],
        Field(
            max_length=MAX_MODELS,
            description="Which weights the ranks have, by model; the first eight.",
            json_schema_extra=dict(list_map("model")),
        ),
    ] = ()


def pods_digest(pods: Iterable[str]) -> str:
    """Return a short name for a set of pods."""
    return digest(sorted(pods))
