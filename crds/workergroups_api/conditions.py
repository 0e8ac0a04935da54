"""Conditions: what is true of an object, since when, and why. There is no phase: `Ready` sums them up."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Annotated, Literal

from pydantic import Field

from workergroups_api.bounded_text import MAX_MESSAGE, MAX_TERM, Term
from workergroups_api.model import ApiModel, list_map
from workergroups_common.text import plain

ConditionStatus = Literal["True", "False", "Unknown"]
# More than the operator writes: other writers' conditions must leave it room.
MAX_CONDITIONS = 64
# Of findings whose reason somebody else has written, in a report or in a pod's status, and left empty.
_UNNAMED = "Unnamed"


@dataclass(frozen=True)
class Explanation:
    """Why something is so: a reason in CamelCase for programs, and a sentence for people that says what to do."""

    reason: str
    message: str


class Condition(ApiModel):
    """As `metav1.Condition`, so that `kubectl wait --for=condition=Ready` works."""

    type: Annotated[str, Field(max_length=316, description="Type of the condition.")]
    status: Annotated[Term, Field(description="True, False or Unknown.")]
    reason: Annotated[str, Field(min_length=1, max_length=1024, description="The reason in CamelCase, for programs.")]
    message: Annotated[str, Field(max_length=32768, description="What is wrong and what to do, for people.")] = ""
    observed_generation: Annotated[
        int, Field(ge=0, description="The generation of the object that this condition is about.")
    ] = 0
    last_transition_time: Annotated[datetime, Field(description="When the status of the condition last changed.")]


Conditions = Annotated[
    tuple[Condition, ...],
    Field(
        max_length=MAX_CONDITIONS,
        description="What is true of the object. Ready sums up the others, except Complete, "
        "Progressing, UpToDate, Suspended and Idle.",
        json_schema_extra=dict(list_map("type")),
    ),
]


class Finding(ApiModel):
    """What a policy concludes: a condition without its history."""

    type: str
    status: ConditionStatus
    reason: str
    message: str = ""
    # Decides Ready, whatever precedes it.
    decisive: bool = False
    # Waiting does not fix it, so no deadline applies.
    final: bool = False


def find(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """Return the condition of that type, None if there is none."""
    return next((condition for condition in conditions if condition.type == type_), None)


def merge(
    previous: Sequence[Condition], findings: Iterable[Finding], generation: int, now: datetime
) -> tuple[Condition, ...]:
    """Return conditions from findings; the transition time changes only when the status does."""

    def merged(finding: Finding) -> Condition:
        before = find(previous, finding.type)
        changed = before is None or before.status != finding.status
        return Condition(
            type=finding.type,
            status=finding.status,
            reason=plain(finding.reason, MAX_TERM) or _UNNAMED,
            message=plain(finding.message, MAX_MESSAGE),
            observed_generation=generation,
            last_transition_time=now.astimezone(timezone.utc).replace(microsecond=0)
            if before is None or changed
            else before.last_transition_time,
        )

    return tuple(merged(finding) for finding in findings)
