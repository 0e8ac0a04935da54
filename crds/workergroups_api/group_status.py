"""The status of a WorkerGroup. It needs few models, so that a reader of statuses imports little."""

from typing import Annotated

from pydantic import Field

from workergroups_api.failure_policy import MAX_KEPT_FAILURES, KeptFailure
from workergroups_api.model import WHOLE
from workergroups_api.plan import IncarnationRecord
from workergroups_api.report import GroupReport
from workergroups_api.status_summary import GroupSummary


class WorkerGroupStatus(GroupSummary, IncarnationRecord):
    """What was observed: the operator writes the conditions, the agent the ranks."""

    failures: Annotated[
        tuple[KeptFailure, ...],
        Field(
            max_length=MAX_KEPT_FAILURES,
            description="The ten latest failures of ranks, the latest first.",
            json_schema_extra=WHOLE,
        ),
    ] = ()
    ranks: Annotated[GroupReport | None, Field(description="What the agent observes of the ranks in Ray.")] = None
