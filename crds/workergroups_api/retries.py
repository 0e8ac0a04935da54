"""How often something was tried again in a row, kept where a restart of the operator does not forget it."""

from typing import Annotated

from pydantic import AwareDatetime, Field

from workergroups_api.model import ApiModel


class Retries(ApiModel):
    """Failures in a row, and when the next try begins."""

    failures: Annotated[int, Field(ge=0, description="How many tries in a row have failed.")] = 0
    next: Annotated[
        AwareDatetime | None,
        Field(description="When the next try begins; absent when none waits."),
    ] = None
