"""The record of a job that outlives Ray's head: what the command line keeps of it in a ConfigMap of the Ray cluster.

Users can write the ConfigMap, so nothing but the command line's own output rests on it. It holds no variable and no
secret. The command is part of it, as it is part of Ray's own record.
"""

from typing import Annotated

from pydantic import AwareDatetime, Field

from workergroups_api.model import ApiModel

MAX_ID = 256
MAX_COMMAND = 256
MAX_MESSAGE = 512
MAX_GROUPS = 20
MAX_HEADS = 8


class KeptJobRecord(ApiModel):
    """One attempt of a job."""

    id: Annotated[str, Field(max_length=MAX_ID, description="The submission id of the attempt.")]
    job: Annotated[str, Field(max_length=MAX_ID, description="The id of the job, which its attempts have in common.")]
    attempt: Annotated[int, Field(ge=1, description="Number of the attempt, from 1.")] = 1
    retries: Annotated[int, Field(ge=0, description="How many more attempts the job may have after the first.")] = 0
    pool: Annotated[str, Field(description="The pool that the job was submitted to.")]
    groups: Annotated[
        tuple[str, ...],
        Field(max_length=MAX_GROUPS, description="The groups on the pool that the next attempt waits for."),
    ] = ()
    entrypoint: Annotated[str, Field(max_length=MAX_COMMAND, description="The command, shortened.")]
    heads: Annotated[
        tuple[str, ...],
        Field(max_length=MAX_HEADS, description="What identifies the head's containers in one of which the job ran."),
    ] = ()
    on_node: Annotated[
        bool, Field(description="Whether the driver runs on a node of the pool, which may outlive the head.")
    ] = False
    session: Annotated[str | None, Field(description="The Ray session in which the job ran.")] = None
    state: Annotated[str, Field(description="The last known state, as Ray names it.")]
    message: Annotated[str, Field(max_length=MAX_MESSAGE, description="What Ray said about the state.")] = ""
    started: Annotated[AwareDatetime, Field(description="When the attempt was submitted.")]
    ended: Annotated[AwareDatetime | None, Field(description="When it ended. Absent if that is not known.")] = None
    driver_exit_code: Annotated[int | None, Field(description="Exit code of the driver. Absent if not known.")] = None
    stop: Annotated[bool, Field(description="Whether the job was stopped: no other attempt begins.")] = False
