"""Conditions: what is true of an object, since when, and why. No phase; `Ready` sums up."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field

from workergroups_api.model import ApiModel, list_map

Truth = Literal["True", "False", "Unknown"]


class Condition(ApiModel):
    """As `metav1.Condition`, so that `kubectl wait --for=condition=Ready` works."""

    type: Annotated[str, Field(max_length=316)]
    status: Truth
    reason: Annotated[str, Field(min_length=1, max_length=1024)]
    message: Annotated[str, Field(max_length=32768)] = ""
    observed_generation: Annotated[int, Field(ge=0)] = 0
    last_transition_time: datetime


Conditions = Annotated[tuple[Condition, ...], Field(json_schema_extra=dict(list_map("type")))]


class Finding(ApiModel):
    """A condition before it has a history: what a policy concludes."""

    type: str
    status: Truth
    reason: str
    message: str = ""
    # Waiting does not mend it, so no deadline applies.
    final: bool = False


def find(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """The condition of that type, if there is one."""
    return next((condition for condition in conditions if condition.type == type_), None)


def merge(
    previous: Sequence[Condition], findings: Iterable[Finding], generation: int, now: datetime
) -> tuple[Condition, ...]:
    """Conditions from findings; the transition time moves only when the status does."""

    def merged(finding: Finding) -> Condition:
        before = find(previous, finding.type)
        changed = before is None or before.status != finding.status
        return Condition(
            **finding.model_dump(exclude={"final"}),
            observed_generation=generation,
            last_transition_time=now.astimezone(UTC).replace(microsecond=0)
            if before is None or changed
            else before.last_transition_time,
        )

    return tuple(merged(finding) for finding in findings)
