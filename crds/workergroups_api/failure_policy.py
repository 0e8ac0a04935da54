"""What happens when a rank of a group fails: the user's policy, and what the operator remembers of failures."""

from typing import Annotated

from pydantic import AwareDatetime, Field

from workergroups_api.bounded_text import Term
from workergroups_api.model import ApiModel, schema
from workergroups_api.report import MAX_LAST_WORDS, RankFailure
from workergroups_api.vocabulary import FAILURES, RankEnd, Restart

MAX_RESTARTS = 100
# Of a status: the latest failures of a group.
MAX_KEPT_FAILURES = 10


class FailurePolicy(ApiModel):
    """When the ranks of a group are recreated after one of them has failed."""

    restart: Annotated[
        Restart,
        Field(
            description="Group: all ranks are recreated in the same pods, on the same bundles, as a new incarnation. "
            "Rank: only the ranks that failed are, and the others keep running with what they have in memory; for "
            "ranks that do not depend on each other. "
            "Never: the others keep running, until you change the group or run `workergroups restart`."
        ),
    ] = Restart.GROUP
    max_restarts: Annotated[
        int,
        Field(
            ge=0,
            le=MAX_RESTARTS,
            description="After this many restarts within `windowSeconds`, the next failure is final: the condition "
            "Failed is True.",
        ),
    ] = 3
    window_seconds: Annotated[
        int, Field(ge=1, le=604800, description="For how many seconds a restart counts towards `maxRestarts`.")
    ] = 600
    backoff_seconds: Annotated[
        int,
        Field(
            ge=0,
            le=3600,
            description="The first restart within `windowSeconds` is immediate, the second follows after this many "
            "seconds, and each further one after twice the pause of the last, up to 300 s or this many.",
        ),
    ] = 10
    unlimited_for: Annotated[
        tuple[Annotated[RankEnd, Field(json_schema_extra={"enum": [str(end) for end in FAILURES]})], ...],
        Field(
            max_length=len(FAILURES),
            description="Reasons that do not count: if one of the failed ranks has such a reason, the restart is not "
            "one of `maxRestarts`. Restarts after NodeLost and Preempted are immediate: they wait for the node anyway. "
            "After another reason of the list, each follows after `backoffSeconds`.",
            json_schema_extra=schema(x_kubernetes_list_type="set"),
        ),
    ] = (RankEnd.NODE_LOST, RankEnd.PREEMPTED)
    hang_seconds: Annotated[
        int | None,
        Field(
            ge=10,
            le=604800,
            description="A method call that runs for longer than this counts as a failure, with the reason Hung. "
            "Default: a call may take any time.",
        ),
    ] = None


class RestartHistory(ApiModel):
    """The restarts of a group after failures. Stored, so that a restart of the operator loses none."""

    count: Annotated[int, Field(ge=0, description="Number of restarts since the group was created.")] = 0
    recent: Annotated[
        tuple[AwareDatetime, ...],
        Field(
            max_length=MAX_RESTARTS,
            description="Times of the latest restarts that count towards `maxRestarts`, the oldest first.",
            json_schema_extra=schema(x_kubernetes_list_type="atomic"),
        ),
    ] = ()
    failed_at: Annotated[
        AwareDatetime | None,
        Field(description="When the operator learned that the current incarnation failed. Absent if it did not."),
    ] = None


class KeptFailure(RankFailure):
    """A failure that the status keeps: of which incarnation, where, and when."""

    incarnation: Annotated[int, Field(description="The incarnation that the rank belonged to.")]
    node: Annotated[
        Term | None, Field(description="Kubernetes node of the pod. Absent if the pod was gone before it was known.")
    ] = None
    time: Annotated[AwareDatetime, Field(description="When the operator learned of it, by its clock.")]
    last_words: Annotated[
        str | None,
        Field(
            max_length=MAX_LAST_WORDS,
            description="The end of what the rank printed. All that was kept: `workergroups logs --previous`.",
        ),
    ] = None
