"""A job whose driver is submitted again when it fails, or is lost with Ray's head."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from ..errors import DeadlineError
from ..times import duration
from ..waiting import Tell, silently
from .jobs import Job
from .left_calls import LeftCall
from .records import JobRecord

Next = Callable[[JobRecord, Tell], Job | None]
"""Submits the next attempt after one that has ended, and returns it, or ``None`` if there should be none."""


class RetriedJob(Job):
    """The job of several attempts. The next one is submitted while `wait` or `logs` with ``follow`` runs.

    Args:
        job_id: The id that the attempts have in common.
        first: The first attempt.
        submit_next: Submits the next attempt.
    """

    def __init__(self, job_id: str, first: Job, submit_next: Next) -> None:
        self.id, self.pool = job_id, first.pool
        self._present, self._next = first, submit_next
        self._last: JobRecord | None = None

    def record(self) -> JobRecord:
        """Return the record of the present attempt, or of the last one."""
        return self._last or self._present.record()

    def logs(self, *, follow: bool = False, tell: Tell = silently) -> Iterator[bytes]:
        """Yield the output of the present attempt; with ``follow``, until it ends, and then that of the following ones.

        Raises:
            ClientError: An attempt cannot be followed, or the next one cannot be submitted.
        """
        yield from self._present.logs(follow=follow, tell=tell)
        while follow and self._goes_on(self._present.record(), tell):
            yield from self._present.logs(follow=True, tell=tell)

    def wait(self, seconds: float | None = None) -> JobRecord:
        """Wait until no other attempt follows, and return the record of the last one.

        Raises:
            DeadlineError: That is not so after ``seconds``, of which the wait for the next attempt takes any number.
            ClientError: The next attempt cannot be submitted.
        """
        limit = float("inf") if seconds is None else seconds
        until = time.monotonic() + limit
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise DeadlineError(f"job {self.id} has not ended within {duration(limit)}")
            record = self._last or self._present.wait(left)
            if not self._goes_on(record, silently):
                return record

    def calls(self) -> list[LeftCall]:
        """Return the calls of the present attempt's driver that run in ranks of groups."""
        return self._present.calls()

    def stop(self) -> JobRecord:
        """Stop the present attempt, and return its record; no other attempt follows."""
        self._last = self._last or self._present.stop()
        return self._last

    def _goes_on(self, record: JobRecord, tell: Tell) -> bool:
        if self._last is not None:
            return False
        following = self._next(record, tell)
        if following is None:
            self._last = record
            return False
        self._present = following
        return True
