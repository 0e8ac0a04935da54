"""Ray jobs of a pool: submit, follow, stop."""

from __future__ import annotations

import secrets
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import ClientError, DeadlineError, UnreachableError
from .ray_api import RayApi
from .secret_env import as_typed
from .waiting import Tell, look_again, silently

_ENDED = {"SUCCEEDED", "FAILED", "STOPPED"}
_RECONNECT_SECONDS = 120
_STOP_SECONDS = 60
# The exit code of a shell for a program that SIGTERM ended, which is how Ray stops a job.
STOPPED_EXIT_CODE = 143


@dataclass(frozen=True)
class JobRecord:
    """Ray's record of a job."""

    id: str
    state: str
    """PENDING, RUNNING, SUCCEEDED, FAILED or STOPPED."""
    entrypoint: str
    """The command as it was submitted."""
    message: str
    started: float | None
    """Seconds since the epoch."""
    ended: float | None
    driver_exit_code: int | None

    @property
    def has_ended(self) -> bool:
        """Whether the job has ended."""
        return self.state in _ENDED

    @property
    def exit_code(self) -> int | None:
        """The exit code of the driver; ``None`` while the job has not ended.

        It is 143 for a job that was stopped, and 1 for one whose driver could not be started.
        """
        if not self.has_ended:
            return None
        if self.state == "SUCCEEDED":
            return 0
        if self.state == "STOPPED":
            return STOPPED_EXIT_CODE
        code = self.driver_exit_code
        # Python gives the number of a signal as a negative code; a shell adds it to 128.
        return 1 if not code else 128 - code if code < 0 else code


class Job:
    """One job of a Ray cluster.

    Args:
        job_id: The submission id.
        ray: The API of the Ray cluster.
        pool: The name of the pool that the job was submitted to, for messages.
    """

    def __init__(self, job_id: str, ray: RayApi, pool: str) -> None:
        self.id, self.pool = job_id, pool
        self._ray = ray

    def record(self) -> JobRecord:
        """Return Ray's present record of the job."""
        return _record(self._ray.get(f"/api/jobs/{self.id}"))

    def logs(self, *, follow: bool = False, tell: Tell = silently) -> Iterator[str]:
        """Yield the driver's output in pieces; with ``follow``, until the job has ended.

        After a connection was lost, reconnect and continue where the output stopped.
        """
        if not follow:
            yield self._ray.get(f"/api/jobs/{self.id}/logs")["logs"]
            return
        seen = 0
        while True:
            # Each connection starts from the beginning of the output.
            to_skip = seen
            try:
                self._wait_until_started(tell)
                for text in self._ray.follow(f"/api/jobs/{self.id}/logs/tail"):
                    fresh = text[to_skip:]
                    to_skip = max(0, to_skip - len(text))
                    seen += len(fresh)
                    yield fresh
                if self.record().has_ended:
                    return
            except UnreachableError as error:
                self._wait_for_connection(error, tell)

    def wait(self, seconds: float | None = None) -> JobRecord:
        """Wait until the job has ended, and return its record.

        Raises:
            DeadlineError: The job has not ended after ``seconds``.
        """
        for _ in look_again(seconds if seconds is not None else float("inf")):
            record = self.record()
            if record.has_ended:
                return record
        raise DeadlineError(f"job {self.id} has not ended within {seconds:g} s: {record.state}: {record.message}")

    def stop(self) -> JobRecord:
        """Stop the job if it has not ended, and return its record when it has."""
        if not self.record().has_ended:
            self._ray.post(f"/api/jobs/{self.id}/stop")
        return self.wait(_STOP_SECONDS)

    def _wait_until_started(self, tell: Tell) -> None:
        while (record := self.record()).state == "PENDING":
            tell(f"job {self.id} is pending: {record.message}")
            time.sleep(1)

    def _wait_for_connection(self, error: UnreachableError, tell: Tell) -> None:
        for left in look_again(_RECONNECT_SECONDS, pause=1):
            tell(f"the connection to job {self.id} is lost, trying again for {left:.0f} s: {error}")
            try:
                self.record()
                return
            except UnreachableError as again:
                error = again
        raise UnreachableError(f"job {self.id} cannot be reached, but may still be running: {error}")


def submit(
    ray: RayApi,
    pool: str,
    command: Sequence[str],
    runtime_env: Mapping[str, Any],
    job_id: str | None = None,
    *,
    before: str = "",
) -> Job:
    """Start a command on the head of a Ray cluster.

    Args:
        ray: The API of the Ray cluster.
        pool: The name of the pool, with which the default id begins.
        command: The program and its arguments; no shell changes them.
        runtime_env: A runtime environment as Ray defines it.
        job_id: The submission id; by default the pool's name and some random letters.
        before: Shell code that runs before the command.
    """
    if not command:
        raise ClientError("the command of the job is empty: say what to run, such as python train.py")
    body = {
        "entrypoint": before + shlex.join(command),
        "submission_id": job_id or f"{pool}-{secrets.token_hex(3)}",
        "runtime_env": dict(runtime_env),
    }
    return Job(str(ray.post("/api/jobs/", body)["submission_id"]), ray, pool)


def list_records(ray: RayApi) -> list[JobRecord]:
    """Return the submitted jobs that the Ray cluster still knows, the latest first."""
    submitted = [job for job in ray.get("/api/jobs/") if job["type"] == "SUBMISSION"]
    return sorted(map(_record, submitted), key=lambda record: -(record.started or 0))


def _record(said: Mapping[str, Any]) -> JobRecord:
    return JobRecord(
        id=said["submission_id"],
        state=said["status"],
        entrypoint=as_typed(said["entrypoint"]),
        message=said.get("message") or "",
        started=_seconds(said.get("start_time")),
        ended=_seconds(said.get("end_time")),
        driver_exit_code=said.get("driver_exit_code"),
    )


def _seconds(milliseconds: int | None) -> float | None:
    return milliseconds / 1000 if milliseconds else None
