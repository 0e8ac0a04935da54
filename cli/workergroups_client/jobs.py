"""Ray jobs of a pool: submitting, following, stopping."""

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
# What a shell gives for a program that SIGTERM ended, which is how Ray stops a job.
STOPPED_EXIT_CODE = 143


@dataclass(frozen=True)
class JobRecord:
    """What Ray knows about a job."""

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
        """Whether nothing will happen to it any more."""
        return self.state in _ENDED

    @property
    def exit_code(self) -> int | None:
        """The driver's exit code, once it has ended; ``None`` while it has not.

        One that was stopped has 143, and one whose driver could not even be started 1.
        """
        if not self.has_ended:
            return None
        if self.state == "SUCCEEDED":
            return 0
        if self.state == "STOPPED":
            return STOPPED_EXIT_CODE
        code = self.driver_exit_code
        # Python has a signal's number as a negative code; a shell adds it to 128.
        return 1 if not code else 128 - code if code < 0 else code


class Job:
    """One job of a Ray cluster.

    Args:
        job_id: Its submission id.
        ray: The cluster's API.
        pool: The name of the pool that it was submitted to, for messages.
    """

    def __init__(self, job_id: str, ray: RayApi, pool: str) -> None:
        self.id, self.pool = job_id, pool
        self._ray = ray

    def record(self) -> JobRecord:
        """What Ray knows about it now."""
        return _record(self._ray.get(f"/api/jobs/{self.id}"))

    def logs(self, *, follow: bool = False, tell: Tell = silently) -> Iterator[str]:
        """What its driver has printed, in pieces; with ``follow`` until the job has ended.

        A connection that breaks is made again, and goes on where it was.
        """
        if not follow:
            yield self._ray.get(f"/api/jobs/{self.id}/logs")["logs"]
            return
        seen = 0
        while True:
            # Each connection tells it from the beginning.
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
        """Wait until it has ended.

        Raises:
            DeadlineError: It has not after so many seconds.
        """
        for _ in look_again(seconds if seconds is not None else float("inf")):
            record = self.record()
            if record.has_ended:
                return record
        raise DeadlineError(f"job {self.id} has not ended within {seconds:g} s: {record.state}: {record.message}")

    def stop(self) -> JobRecord:
        """End it, and return when it has ended; nothing happens to one that has."""
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
    """Start a command on the cluster's head.

    Args:
        ray: The cluster's API.
        pool: The pool whose name begins the job's id.
        command: The program and its arguments; each arrives as it is, no shell changes it.
        runtime_env: As Ray has it.
        job_id: By default the pool's name and some random letters.
        before: What the shell that starts the command is to do before.
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
    """The jobs that were submitted to the cluster and are still known there, the latest first."""
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
