"""How many retries in a row have failed; stored where a restart of the operator does not lose it."""

from typing import Annotated

from pydantic import AwareDatetime, Field

from workergroups_api.model import ApiModel


class Retries(ApiModel):
    """Failures in a row, and when the next try begins."""

    failures: Annotated[int, Field(ge=0, description="Number of tries in a row that failed.")] = 0
    next: Annotated[
        AwareDatetime | None,
        Field(description="When the next try begins. Absent if none is scheduled."),
    ] = None
