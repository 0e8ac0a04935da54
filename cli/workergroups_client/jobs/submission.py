"""What a job is started from. Each attempt of the job is started from the same, whatever has changed here since."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workergroups.tracing import SPAN_VARIABLES
from workergroups_api.vocabulary import JobVariable
from workergroups_common.text import plain

from ..errors import ClientError, ConflictError, NotFoundError, NotRunningError
from ..objects.names import Target
from ..objects.reading import pool_spec
from ..ray_cluster.handle import Handle
from . import jobs, secret_env
from .driver_place import DriverPlace
from .jobs import Job
from .kept_records import KeptRecords
from .runtime_env import PackedEnv, merged, packed

# Ray names a file after the id, and the number of the attempt follows it. The id is part of URLs and the key of a
# record in a ConfigMap, too.
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


@dataclass(frozen=True)
class Submission:
    """A command, and what it is started from."""

    job: str
    """The id of the job."""
    command: Sequence[str]
    runtime_env: PackedEnv
    env: Mapping[str, str]
    env_from: Sequence[str]
    span: Mapping[str, str]
    """What names the span in which the job is submitted, for a job that is given no other."""
    node: int | None = None
    """The number of the node on which the driver runs; ``None`` for the head."""
    key: str = field(default_factory=lambda: secrets.token_hex(8))
    """What only the attempts of this submission have in their records."""

    @classmethod
    def of(
        cls,
        pool: Target,
        command: Sequence[str],
        working_dir: str | Path | None,
        runtime_env: Mapping[str, Any] | None,
        env: Mapping[str, str] | None,
        env_from: Iterable[str],
        job_id: str | None,
        node: int | None = None,
    ) -> Submission:
        """Pack the working directory as it is now; see `Pool.submit`."""
        directory = Path(working_dir) if working_dir is not None else None
        job = job_id or f"{pool.name}-{secrets.token_hex(3)}"
        if not _ID.fullmatch(job):
            raise ClientError(
                f"{plain(ascii(job), 60)} cannot be the id of a job (--name): use letters, digits, '.', '_' and '-', "
                "first a letter or a digit, at most 200"
            )
        env_of_ray = packed(merged(runtime_env or {}, directory, {}))
        span = {name: os.environ[name] for name in SPAN_VARIABLES if name in os.environ}
        return cls(job, command, env_of_ray, env or {}, tuple(env_from), span, node)

    def start(
        self, pool: Handle, kept: KeptRecords, job_id: str, attempt: int, patience: float, *, again: bool = False
    ) -> Job:
        """Submit one attempt; with ``again``, if it was submitted already, return it.

        Raises:
            UnreachableError: The attempt may have been submitted, or not: submit it again under the same id.
        """
        job = Job(job_id, pool.ray.api, pool.name, kept, patience)
        if again and self._has_submitted(job_id, pool):
            return job
        hidden = secret_env.variables_of(pool.cluster, self.env_from)
        given = {*hidden, *(self.runtime_env.env.get("env_vars") or {})}
        span = {name: value for name, value in self.span.items() if name not in given}
        variables = {**span, **_shape(pool.target), **self.env, JobVariable.ATTEMPT.value: str(attempt)}
        wanted = merged(self.runtime_env.env, None, variables)
        self.runtime_env.send(pool.ray.api)
        hidden = {name: value for name, value in hidden.items() if name not in wanted["env_vars"]}
        metadata = jobs.attempt_metadata(self.job, attempt, self.key)
        place = DriverPlace.of(pool.cluster, pool.ray.api, pool.target, self.node)
        try:
            with secret_env.handed_over(pool.cluster, place.container, hidden) as before:
                jobs.submit(
                    *(pool.ray.api, pool.name, self.command, wanted, job_id),
                    before=before,
                    metadata=metadata,
                    resources=place.resources,
                )
        except ConflictError:
            # The one of a request before, of which no answer came, may have arrived meanwhile.
            if not (again and self._has_submitted(job_id, pool)):
                raise
        return job

    def _has_submitted(self, job_id: str, pool: Handle) -> bool:
        """Return whether Ray has this attempt: the answer to its submission may have been lost."""
        try:
            return jobs.is_of_submission(pool.ray.api.get(f"/api/jobs/{job_id}"), self.key)
        except NotRunningError:
            raise
        except NotFoundError:
            return False


def _shape(pool: Target) -> dict[str, str]:
    spec = pool_spec(pool)
    return {
        JobVariable.NODES.value: str(spec.nodes),
        JobVariable.PROCESSES_PER_NODE.value: str(spec.processes_per_node),
    }
