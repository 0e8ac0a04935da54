"""Ray jobs of a pool: submit, follow, stop."""

from __future__ import annotations

import secrets
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from workergroups_api.names import GROUP

from ..errors import ClientError, ConflictError, DeadlineError, NotFoundError, NotRunningError, UnreachableError
from ..ray_cluster.ranks import node_addresses
from ..ray_cluster.ray_api import RayApi
from ..times import duration
from ..waiting import Lasting, Tell, look_again, silently
from .kept_records import KeptRecords
from .left_calls import LeftCall, left_calls
from .records import LOST, RUNNING, UNKNOWN, JobRecord
from .secret_env import as_typed

RECONNECT_SECONDS = 120
"""How long to look for a job whose connection was lost."""
# How long a job prints nothing before its record is looked at, and for how long Ray may read a file.
_LOOK_SECONDS, _READ_SECONDS = 1.0, 24 * 3600
# How long to try to read the end of the output, and how often to look whether the driver's node is still there.
_REST_SECONDS, _NODE_SECONDS = 20, 10.0
# Keys in the metadata of Ray's record, and how long a number there may be.
_JOB, _ATTEMPT, _SUBMISSION = (f"{GROUP}/{key}" for key in ("job", "attempt", "submission"))
_MOST_DIGITS = 9
# In Ray's refusal of an id that another job has.
_TAKEN = "already exists"
_STOP_SECONDS = 60
_GRACE = {"RAY_JOB_STOP_WAIT_TIME_S": "30"}
"""How long a driver that is told to stop may take, as long as a pod: Ray's three seconds are short for a checkpoint."""


class Job:
    """One job of a Ray cluster.

    Args:
        job_id: The submission id.
        ray: The API of the Ray cluster.
        pool: The name of the pool that the job was submitted to, for messages.
        kept: The records that outlive Ray's head.
        patience: For how many seconds to look for a job whose connection was lost.
    """

    def __init__(
        self, job_id: str, ray: RayApi, pool: str, kept: KeptRecords | None = None, patience: float = RECONNECT_SECONDS
    ) -> None:
        self.id, self.pool = job_id, pool
        self._ray, self._kept, self._patience = ray, kept, patience
        self._end: JobRecord | None = None
        self._look_at_node = 0.0

    def record(self) -> JobRecord:
        """Return Ray's present record of the job, or the kept one if Ray has forgotten the job.

        Raises:
            NotFoundError: Ray does not know the job, or Ray's head is gone, and no record was kept.
        """
        if self._end is not None:
            return self._end
        record = self._look()
        if record.has_ended:
            self._end = record
            if self._kept and record.state != LOST:
                with suppress(ClientError):
                    self._kept.note_end(record)
        return record

    def logs(self, *, follow: bool = False, tell: Tell = silently) -> Iterator[bytes]:
        """Yield the driver's output in pieces; with ``follow``, until the job has ended.

        After a connection was lost, reconnect and continue where the output stopped.
        """
        if not follow:
            yield from self._written()
            return
        seen = 0
        while True:
            try:
                if self._wait_until_started(tell).state == LOST:
                    return
                for piece in _from(seen, self._while_it_runs()):
                    seen += len(piece)
                    yield piece
                if (record := self.record()).has_ended:
                    yield from self._rest(seen, tell) if record.state != LOST else ()
                    return
            except (UnreachableError, NotRunningError) as error:
                self._wait_for_connection(error, tell, self._patience)
                time.sleep(_LOOK_SECONDS)  # Ray may answer, but not for the output

    def _rest(self, seen: int, tell: Tell) -> Iterator[bytes]:
        """Yield what follows the first ``seen`` bytes, unless it went with its node, or with the head."""
        why = ""
        for _ in look_again(_REST_SECONDS, pause=_LOOK_SECONDS):
            try:
                for piece in _from(seen, self._written()):
                    seen += len(piece)
                    yield piece
                return
            except (UnreachableError, NotFoundError) as error:  # the next head may not know the job
                why = f"the rest of the output of job {self.id} cannot be read: {error}"
                tell(why)
        tell(Lasting(why))

    def _while_it_runs(self) -> Iterator[bytes]:
        """Yield what has been written, and what is being written until the job is known to have ended."""
        if not (query := self._log_file()):
            time.sleep(_LOOK_SECONDS)
            return
        for piece in self._ray.follow("/api/v0/logs/stream", _LOOK_SECONDS, **query):
            if piece:
                yield piece
            elif self.record().has_ended:
                return

    def _written(self) -> Iterator[bytes]:
        """Yield what has been written."""
        if query := self._log_file():
            yield from self._ray.stream("/api/v0/logs/file", **query)

    def _log_file(self) -> dict[str, str | int]:
        """Return where the output is; empty if the driver has not been started.

        Ray's interface for the output of jobs reads it as UTF-8, and breaks off at anything else, and at long lines.
        """
        node = self._ray.get(f"/api/jobs/{self.id}").get("driver_node_id")
        where: dict[str, str | int] = {"node_id": node, "filename": f"job-driver-{self.id}.log"}
        return where | {"lines": -1, "timeout": _READ_SECONDS} if node else {}

    def wait(self, seconds: float | None = None) -> JobRecord:
        """Wait until the job has ended, and return its record.

        Raises:
            DeadlineError: The job has not ended after ``seconds``.
        """
        limit = float("inf") if seconds is None else seconds
        for left in look_again(limit):
            try:
                record = self._present_record()
            except (UnreachableError, NotRunningError) as error:
                self._wait_for_connection(error, silently, min(self._patience, left))
                continue
            if record.has_ended:
                return record
        raise DeadlineError(
            f"job {self.id} has not ended within {duration(limit)}: see workergroups job status {self.id}"
        )

    def stop(self) -> JobRecord:
        """Stop the job if it has not ended, and return its record when it has."""
        if self._kept:
            with suppress(ClientError):
                self._kept.note_stop(self.id)
        if not self.record().has_ended:
            self._ray.post(f"/api/jobs/{self.id}/stop")
        return self.wait(_STOP_SECONDS)

    def calls(self) -> list[LeftCall]:
        """Return the calls of the driver that run in ranks of groups: ranks go on with them when the job ends."""
        return left_calls(self._ray, self.id)

    def _look(self) -> JobRecord:
        try:
            return self._unless_lost(self._ray.get(f"/api/jobs/{self.id}"))
        except ClientError as error:
            is_unknown = isinstance(error, NotFoundError)
            kept = self._kept_record(has_answered=is_unknown and not isinstance(error, NotRunningError))
            # A job on the head is lost with it, whatever the next head answers.
            if kept is None or (kept.state == UNKNOWN and not is_unknown):
                raise
            return kept

    def _unless_lost(self, said: Mapping[str, Any]) -> JobRecord:
        """Return Ray's record; LOST instead of RUNNING if the driver's node is gone, which Ray looks at later."""
        record = as_record(said)
        if record.state != RUNNING or time.monotonic() < self._look_at_node:
            return record
        self._look_at_node = time.monotonic() + _NODE_SECONDS
        (seen,) = _unless_nodes_are_gone(self._ray, [said])
        return seen

    def _kept_record(self, *, has_answered: bool) -> JobRecord | None:
        try:
            return self._kept.of_absent(self.id, has_answered=has_answered) if self._kept else None
        except ClientError:  # such as without the right to read it
            return None

    def _wait_until_started(self, tell: Tell) -> JobRecord:
        while (record := self._present_record()).state == "PENDING":
            tell(f"job {self.id} is pending: {record.message}")
            time.sleep(1)
        return record

    def _present_record(self) -> JobRecord:
        """Return the record, unless it is unknown whether the job runs."""
        record = self.record()
        if record.state == UNKNOWN:
            raise UnreachableError(record.message)
        return record

    def _wait_for_connection(self, error: ClientError, tell: Tell, seconds: float) -> None:
        for left in look_again(seconds, pause=1):
            tell(f"the connection to job {self.id} is lost, trying again for {duration(left)}: {error}")
            try:
                self._present_record()
                return
            except (UnreachableError, NotRunningError) as again:
                error = again
        raise UnreachableError(f"job {self.id} cannot be reached, but may still be running: {error}")


def _from(start: int, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the pieces without their first ``start`` bytes."""
    for piece in pieces:
        if fresh := piece[start:]:
            yield fresh
        start = max(0, start - len(piece))


class AbsentJob(Job):
    """A job that Ray does not know any more, or cannot be asked for: only its kept record exists."""

    def __init__(self, record: JobRecord, pool: str, kept: KeptRecords) -> None:
        self.id, self.pool = record.id, pool
        self._record, self._kept = record, kept

    def record(self) -> JobRecord:
        """Return the kept record."""
        return self._record

    def logs(self, *, follow: bool = False, tell: Tell = silently) -> Iterator[bytes]:
        """Raise NotFoundError: the output was in the head's pod."""
        raise NotFoundError(
            f"there is no output of job {self.id}, which is {self._record.state} ({self._record.message}): only the "
            f"head's pod has the output. Let the job write what must outlive the head to a volume of the pool"
        )

    def wait(self, seconds: float | None = None) -> JobRecord:
        """Return the kept record if the job has ended.

        Raises:
            UnreachableError: It is unknown whether it has.
        """
        if not self._record.has_ended:
            raise UnreachableError(f"job {self.id} may still be running: {self._record.message}")
        return self._record

    def calls(self) -> list[LeftCall]:
        """Return none, since none is known."""
        return []

    def stop(self) -> JobRecord:
        """Note that no other attempt of the job should begin, and return the kept record if the job has ended."""
        assert self._kept is not None
        self._kept.note_stop(self.id)
        return self.wait()


def submit(
    ray: RayApi,
    pool: str,
    command: Sequence[str],
    runtime_env: Mapping[str, Any],
    job_id: str | None = None,
    *,
    before: str = "",
    metadata: Mapping[str, str] | None = None,
    resources: Mapping[str, float] | None = None,
) -> Job:
    """Start a command on a Ray cluster.

    Args:
        ray: The API of the Ray cluster.
        pool: The name of the pool, with which the default id begins.
        command: The program and its arguments; no shell changes them.
        runtime_env: A runtime environment as Ray defines it.
        job_id: The submission id; by default the pool's name and some random letters.
        before: Shell code that runs before the command.
        metadata: What Ray's record of the job should hold in addition.
        resources: What Ray reserves for the driver, on any node that has it; without any, the driver runs on the head.

    Raises:
        ConflictError: Ray has a job with that id.
    """
    if not command:
        raise ClientError("the command of the job is empty: say what to run, such as python train.py")
    body = {
        "entrypoint": before + shlex.join(command),
        "submission_id": job_id or f"{pool}-{secrets.token_hex(3)}",
        "runtime_env": {**runtime_env, "env_vars": {**_GRACE, **(runtime_env.get("env_vars") or {})}},
        "metadata": dict(metadata or {}),
        **({"entrypoint_resources": dict(resources)} if resources else {}),
    }
    try:
        return Job(str(ray.post("/api/jobs/", body)["submission_id"]), ray, pool)
    except ClientError as error:
        if _TAKEN not in str(error):
            raise
        raise ConflictError(
            f"pool {pool} has a job {job_id} already: choose another id (--name), or leave it out; what that job has "
            f"printed: workergroups job logs {job_id}"
        ) from error


def list_records(ray: RayApi) -> list[JobRecord]:
    """Return the submitted jobs that the Ray cluster still knows, the latest first."""
    submitted = [job for job in ray.get("/api/jobs/") if job["type"] == "SUBMISSION"]
    return sorted(_unless_nodes_are_gone(ray, submitted), key=lambda record: -(record.started or 0))


def _unless_nodes_are_gone(ray: RayApi, said: Sequence[Mapping[str, Any]]) -> list[JobRecord]:
    """Return the records of jobs. A job is LOST that Ray calls RUNNING, but whose driver's node is gone.

    The GCS's state outlives a head, and Ray looks for the drivers of its jobs only when the next job is submitted.
    """
    records = list(map(as_record, said))
    nodes = [job.get("driver_node_id") if job["status"] == RUNNING else None for job in said]
    try:
        live = {None, *node_addresses(ray)} if any(nodes) else {None}
    except ClientError:
        return records
    gone = "the node of its driver is gone, and with it the driver and its output"
    return [
        record if node in live else replace(record, state=LOST, message=gone)
        for record, node in zip(records, nodes, strict=True)
    ]


def attempt_metadata(job: str, attempt: int, submission: str) -> dict[str, str]:
    """Return what Ray's record of an attempt should hold, so that it is found by the job, and by who submitted it."""
    return {_JOB: job, _ATTEMPT: str(attempt), _SUBMISSION: submission}


def is_of_submission(said: Mapping[str, Any], submission: str) -> bool:
    """Return whether a job in Ray's answer is from that submission."""
    return (said.get("metadata") or {}).get(_SUBMISSION) == submission


def as_record(said: Mapping[str, Any]) -> JobRecord:
    """Return Ray's record of a job from Ray's answer. Other programs may have submitted the job."""
    metadata = said.get("metadata") or {}
    attempt = str(metadata.get(_ATTEMPT, ""))
    return JobRecord(
        id=said["submission_id"],
        state=said["status"],
        entrypoint=as_typed(said["entrypoint"]),
        message=said.get("message") or "",
        started=_seconds(said.get("start_time")),
        ended=_seconds(said.get("end_time")),
        driver_exit_code=said.get("driver_exit_code"),
        job=str(metadata.get(_JOB, said["submission_id"])),
        attempt=int(attempt) if attempt.isdecimal() and len(attempt) < _MOST_DIGITS else 1,
    )


def _seconds(milliseconds: int | None) -> float | None:
    return milliseconds / 1000 if milliseconds else None
