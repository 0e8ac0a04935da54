"""The attempts of a job: one after the other, never two at a time.

Only this program submits the next attempt, so without it there is none. An attempt is submitted when

- the one before has ended: Ray says so, or the container of the head in which it ran is gone. If neither is sure, there
  is no next attempt, since the driver of the one before might still call ranks and write checkpoints;
- no driver of it is connected to Ray any more, such as a process that it left in the background;
- the pool is ready, and so are the groups on it that were ready, or on their way, when the attempt before began.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from workergroups_common.backoff import Backoff

from ..errors import ClientError, DeadlineError, NotFoundError, NotRunningError, UnreachableError
from ..objects.deletion import groups_on
from ..objects.names import Target
from ..objects.readiness import wait_until_ready, why_and_until
from ..objects.reading import pool_status
from ..objects.status import Status, status_of
from ..ray_cluster.handle import Handle
from ..times import duration
from ..waiting import Lasting, Tell, look_again
from .jobs import RECONNECT_SECONDS, Job
from .kept_records import KeptRecords
from .records import FAILED, LOST, JobRecord
from .retried_job import RetriedJob
from .submission import Submission

if TYPE_CHECKING:
    from workergroups_api.job_record import KeptJobRecord

BACKOFF = Backoff(first=5, last=60)
WAIT_SECONDS = 24 * 3600
"""How long to wait for a connection, for the end of an attempt, and for what the next one needs."""
_RETRIED = (FAILED, LOST)


@dataclass(frozen=True)
class Attempt:
    """What is known of an attempt when the next one is due."""

    job_id: str
    heads: tuple[str, ...] | None
    """The head's containers that it may have been submitted in; ``None`` if they are not known."""
    session: str | None
    ray_head: str | None
    """Ray's id of the head's node in that session, which may outlive it."""
    groups: tuple[str, ...]
    """The groups that the next attempt waits for."""


class Attempts:
    """Submits the attempts of a job.

    Args:
        pool: The pool on which the job runs.
        kept: The records that outlive Ray's head.
        submission: What each attempt is started from.
        retries: How many attempts there may be after the first.
        on_retry: Called with why an attempt ended, and when the next one begins.
    """

    def __init__(self, pool: Handle, kept: KeptRecords, submission: Submission, retries: int, on_retry: Tell) -> None:
        self._pool, self._kept, self._submission = pool, kept, submission
        self._retries, self._on_retry = retries, on_retry
        self._number = 0
        self._has_tried = False
        # The heads' containers on which the attempt that is due may have been submitted.
        self._tried_on: set[str] = set()
        self._latest: Attempt | None = None

    def job(self, tell: Tell) -> Job:
        """Submit the first attempt; return the job."""
        job = self._first(tell)
        return RetriedJob(self._submission.job, job, self._next) if self._retries else job

    def _first(self, tell: Tell) -> Job:
        """Submit the first attempt; an answer may be lost, and with retries the head be replaced meanwhile."""
        for left in look_again(RECONNECT_SECONDS, pause=1):
            try:
                return self._start(tell)
            except (UnreachableError, NotRunningError) as error:
                if isinstance(error, NotRunningError) and not self._retries:
                    raise
                last = error
                tell(f"trying again for {duration(left)}: {error}")
                with suppress(UnreachableError):
                    self._pool.renew()
        raise DeadlineError(
            f"job {self._submission.job} could not be submitted within {duration(RECONNECT_SECONDS)}, or Ray's answer "
            f"was lost (see workergroups job list): {last}"
        )

    def _next(self, record: JobRecord, tell: Tell) -> Job | None:
        """Submit the next attempt after one that has ended so; return ``None`` if there should be none.

        Raises:
            ClientError: There should be one, but it cannot be submitted.
        """
        if not is_retried(record, self._retries + 1 - self._number):
            return None
        of = f"attempt {self._number} of at most {self._retries + 1} of job {self._submission.job}"
        pause = BACKOFF.after(self._number)
        self._on_retry(
            f"{of} ended: {summary(record)}. The next one begins in {duration(pause)} at the earliest, when the pool "
            f"and the groups on it are ready"
        )
        time.sleep(pause)
        try:
            return self._again(record, tell)
        except ClientError as error:
            raise ClientError(f"{of} ended ({summary(record)}), and there is no next one: {error}") from error

    def _again(self, record: JobRecord, tell: Tell) -> Job | None:
        before = self._latest
        assert before is not None
        if (doubt := doubt_of_end(record, before)) is not None:
            raise ClientError(doubt)
        last: object = "it was not tried"
        for left in look_again(WAIT_SECONDS, pause=1):
            try:
                try:
                    self._wait_until_ready(before, left, tell)
                except NotFoundError as error:
                    self._pool.renew()  # raises if the pool is gone; else a group was deleted: wait for the others
                    last = error
                    continue
                self._pool.renew()
                if (last := still_running(record, before, self._pool)) is not None:
                    tell(f"{last} ({duration(left)} left)")
                    continue
                return None if self._is_stopped(before) else self._start(tell)
            except (UnreachableError, NotRunningError, DeadlineError) as error:
                last = error
                tell(f"trying again for {duration(left)}: {error}")
        raise DeadlineError(f"it could not be submitted within {duration(WAIT_SECONDS)}: {last}")

    def _wait_until_ready(self, before: Attempt, seconds: float, tell: Tell) -> None:
        """Wait for the pool, and for those of the groups that still exist."""
        groups = [group for group in groups_on(self._pool.cluster, self._pool.target) if group.name in before.groups]

        def show(statuses: Sequence[Status]) -> None:
            if waiting := [status for status in statuses if not status.is_ready]:
                first = waiting[0]
                tell(f"the next attempt waits for {first.what} {first.name}: {why_and_until(first)}")

        wait_until_ready(self._pool.cluster, [self._pool.target, *groups], show, seconds)

    def _start(self, tell: Tell) -> Job:
        """Submit the attempt that is due. If that fails, it remains due."""
        pool, number = self._pool, self._number + 1
        job_id = f"{self._submission.job}-{number}" if self._retries else self._submission.job
        self._tried_on |= (before := _heads(self._kept)) or set()
        patience = WAIT_SECONDS if self._retries else RECONNECT_SECONDS
        again, self._has_tried = self._has_tried, True
        try:
            job = self._submission.start(pool, self._kept, job_id, number, patience, again=again)
        except KeyboardInterrupt:
            tell(Lasting(f"job {job_id} may run, or not: see workergroups job status {job_id}"))
            raise
        self._number, self._latest = number, Attempt(job_id, None, None, None, ())
        try:
            # If the head was replaced meanwhile, the attempt is in one of both, or went with one in between.
            after = _heads(self._kept)
            heads = None if before is None or after is None else tuple(sorted(self._tried_on | after))
            self._tried_on = set()
            self._latest = _attempt(pool, job_id, heads)
            self._kept.put(_record(self._latest, self._submission, number, self._retries, pool.name))
        except ClientError as error:
            tell(Lasting(f"no record of job {job_id} will outlive Ray's head: {error}"))
        if number > 1:
            self._on_retry(f"attempt {number} of job {self._submission.job} is job {job_id}")
        return job

    def _is_stopped(self, before: Attempt) -> bool:
        try:
            kept = self._kept.get(before.job_id)
        except UnreachableError:
            raise
        except ClientError:  # without the right to read records, nobody could note it either
            return False
        return kept is not None and kept.stop


def is_retried(record: JobRecord, left: int) -> bool:
    """Return whether another attempt follows one that has ended so, if `left` more are allowed.

    A job that succeeded needs none, and one that was stopped gets none.
    """
    return left > 0 and record.state in _RETRIED


def doubt_of_end(record: JobRecord, attempt: Attempt) -> str | None:
    """Return why it is not sure that the attempt has ended; ``None`` if it is."""
    if record.state != LOST or attempt.heads is not None:
        return None
    return (
        "it is not known in which container of Ray's head the attempt ran, so its driver may still run: see "
        "workergroups status, and submit the job again when nothing of it runs any more"
    )


def still_running(record: JobRecord, attempt: Attempt, pool: Handle) -> str | None:
    """Return what is left of an attempt that has ended, according to the status of the pool; ``None`` if nothing is."""
    report = pool_status(pool.target).reservation
    if report is None:
        return None
    is_of_lost_head = (report.session, report.head) == (attempt.session, attempt.ray_head)
    if record.state == LOST and report.session is not None and is_of_lost_head:
        return f"pool {pool.name} does not report its new Ray head yet"
    if attempt.job_id in report.driver_jobs:
        return (
            f"a driver of job {attempt.job_id} is still connected to Ray, such as a process that the job left in the "
            f"background: end it with workergroups exec {pool.name}"
        )
    return None


def summary(record: JobRecord) -> str:
    """Return how a job ended, in one line: the rest of Ray's message is the end of the output."""
    return f"{record.state}: {record.message.partition(', last available logs')[0]}"


def _heads(kept: KeptRecords) -> set[str] | None:
    """Return the containers of heads; ``None`` if they are not known, as before their status says that they run."""
    try:
        return kept.heads() or None
    except ClientError:
        return None


def _attempt(pool: Handle, job_id: str, heads: tuple[str, ...] | None) -> Attempt:
    """Return what the next attempt must know of the one that was just submitted."""
    report = pool_status(pool.target).reservation
    hopeful = [group.name for group in groups_on(pool.cluster, pool.target) if _is_hopeful(group)]
    session, ray_head = (report.session, report.head) if report else (None, None)
    return Attempt(job_id, heads, session, ray_head, tuple(hopeful))


def _is_hopeful(group: Target) -> bool:
    """Return whether the group is ready, or may become ready soon."""
    try:
        status = status_of(group)
    except ClientError:
        return False
    return not status.is_hopeless and not status.is_late


def _record(attempt: Attempt, submission: Submission, number: int, retries: int, pool: str) -> KeptJobRecord:
    import shlex

    from workergroups_api.job_record import MAX_COMMAND, MAX_GROUPS, MAX_HEADS, KeptJobRecord
    from workergroups_common.text import plain

    return KeptJobRecord(
        id=attempt.job_id,
        job=submission.job,
        attempt=number,
        retries=retries,
        pool=pool,
        groups=attempt.groups[:MAX_GROUPS],
        entrypoint=plain(shlex.join(submission.command), MAX_COMMAND),
        heads=(attempt.heads or ())[:MAX_HEADS],
        on_node=submission.node is not None,
        session=attempt.session,
        state="PENDING",
        started=datetime.now(timezone.utc),
    )
