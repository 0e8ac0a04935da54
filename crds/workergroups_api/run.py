"""A group that runs one method on all ranks, and then ends: what the user wrote, and what the operator remembers."""

from typing import Annotated, Any

from pydantic import AwareDatetime, Field

from workergroups_api.bounded_text import Term
from workergroups_api.launch import RunLaunch
from workergroups_api.model import ANYTHING, ApiModel, cel, schema


class Run(ApiModel):
    """A method of the ranks' class and its arguments."""

    method: Annotated[
        str,
        Field(
            max_length=63,
            description="Name of the method. The operator calls it once on each rank of an incarnation, on all at "
            "once, when all are ready. Return values are not kept.",
            json_schema_extra=schema(
                cel(
                    "self.matches('^[A-Za-z][A-Za-z0-9_]*$')",
                    "spec.run.method must be the name of a public method: letters, digits and '_', beginning with a "
                    "letter",
                )
            ),
        ),
    ]
    kwargs_: Annotated[
        dict[str, Annotated[Any, Field(json_schema_extra=schema(nullable=True) | ANYTHING)]],
        Field(
            alias="kwargs",
            max_length=256,
            description="Keyword arguments of the method: any JSON values. Kubernetes stores 3.0 as 3.",
        ),
    ] = {}

    @property
    def launch(self) -> RunLaunch:
        """What the agent calls."""
        return RunLaunch(method=self.method, keywords=self.kwargs_)


class RunStatus(ApiModel):
    """How far the run of a group is. Stored, so that no restart of the operator runs it again."""

    revision: Annotated[
        Term,
        Field(
            description="Digest of the spec that this run is of, without the content of the code's ConfigMap. A change "
            "of it begins another run."
        ),
    ]
    start_time: Annotated[
        AwareDatetime | None,
        Field(
            description="When the operator first asked for the ranks, from which activeDeadlineSeconds counts. "
            "Restarts after failures do not change it."
        ),
    ] = None
    end_time: Annotated[
        AwareDatetime | None, Field(description="When the operator learned that the run has ended.")
    ] = None
    reason: Annotated[
        Term | None, Field(description="Complete or DeadlineExceeded. Absent while the run has not ended.")
    ] = None
