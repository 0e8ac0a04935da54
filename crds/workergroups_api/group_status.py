"""The status of a WorkerGroup. It needs few models, so that a reader of statuses imports little."""

from typing import Annotated

from pydantic import Field

from workergroups_api.bounded_text import Term
from workergroups_api.failure_policy import MAX_KEPT_FAILURES, KeptFailure, RestartHistory
from workergroups_api.model import WHOLE
from workergroups_api.plan import MAX_BIRTHS, MAX_PARTS, PlannedBundles
from workergroups_api.report import GroupReport
from workergroups_api.retries import Retries
from workergroups_api.run import RunStatus
from workergroups_api.status_summary import GroupSummary


class WorkerGroupStatus(GroupSummary):
    """What was observed: the operator writes the conditions, the agent the ranks."""

    revision: Annotated[
        Term | None,
        Field(
            description="Digest of what this incarnation was created from: `worker` or `roles`, `env`, `envFrom`, "
            "`debug`, the content of the code's ConfigMap, the annotation workergroups.dev/restarted-at, and its "
            "bundles."
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
    failures: Annotated[
        tuple[KeptFailure, ...],
        Field(
            max_length=MAX_KEPT_FAILURES,
            description="The ten latest failures of ranks, the latest first.",
            json_schema_extra=WHOLE,
        ),
    ] = ()
    ranks: Annotated[GroupReport | None, Field(description="What the agent observes of the ranks in Ray.")] = None
