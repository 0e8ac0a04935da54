"""How far each object's status is behind its reports: pure bookkeeping of writes and their failures."""

from dataclasses import dataclass, replace

from workergroups_agent.reporter.follow import describe
from workergroups_agent.reporter.reach import Reach
from workergroups_agent.reporter.subtrees import StatusSubtree
from workergroups_agent.reporter.timings import ReporterTimings
from workergroups_common.backoff import Backoff
from workergroups_common.text import plain
from workergroups_kube import ReplacedError

# Characters of the API server's message.
MAX_WHY = 150


@dataclass(frozen=True)
class Failure:
    """A failed write, and when to retry it."""

    why: str
    status: int | None
    retry_at: float
    # How many writes in a row have failed.
    count: int
    is_gone: bool


def next_failure(error: Exception, before: Failure | None, now: float, retry: Backoff) -> Failure:
    """Return the failure after an error. For errors of one status, the first message stays, since messages may vary."""
    status = getattr(error, "status", None)
    count = 1 if before is None else before.count + 1
    delay = retry.last if is_gone(error) else retry.after(count)
    is_same = before is not None and before.status == status
    why = before.why if before is not None and is_same else describe(error)
    return Failure(why, status, now + delay, count, is_gone(error))


def is_gone(error: Exception) -> bool:
    """Return whether the object no longer exists, or another one has its name."""
    return isinstance(error, ReplacedError) or getattr(error, "status", None) == 404


class Write:
    """What one object's status should hold, and what it is known to hold."""

    def __init__(self, wanted: StatusSubtree, now: float, timings: ReporterTimings) -> None:
        self._wanted = wanted
        self._timings = timings
        # None while it is unknown what the API server has.
        self._written: StatusSubtree | None = None
        # Since when the status has differed from what is wanted; None if it does not.
        self._behind: float | None = now
        self._is_in_flight = False
        # Since when something other than the write in flight has been wanted.
        self._changed: float | None = None
        self._failure: Failure | None = None
        # Whether the status has been in doubt since it was last written.
        self._is_doubted = False

    def want(self, subtree: StatusSubtree, now: float) -> None:
        """Set what the status should hold now."""
        if subtree == self._wanted:
            return
        self._wanted = subtree
        if subtree == self._written:
            self._behind = None
        elif self._behind is None:
            self._behind = now
        if self._changed is None:
            self._changed = now
        if self._failure is not None:  # the API server may accept the new subtree
            retry_at = min(self._failure.retry_at, now + self._timings.status_retry.first)
            self._failure = replace(self._failure, retry_at=retry_at)

    def is_due(self, now: float) -> bool:
        """Return whether to write now."""
        if self._is_in_flight or self._behind is None:
            return False
        return self._failure is None or self._failure.retry_at <= now

    def begin(self) -> StatusSubtree:
        """Return what to write; until `succeed` or `fail`, it is unknown what the API server has."""
        self._is_in_flight, self._written, self._changed = True, None, None
        return self._wanted

    def succeed(self, subtree: StatusSubtree) -> None:
        """Note that the status holds the subtree that was wanted when the write began."""
        self._is_in_flight, self._written, self._failure, self._is_doubted = False, subtree, None, False
        self._behind = None if subtree == self._wanted else self._changed

    def retry(self, now: float) -> None:
        """Write now what failed: the API server has begun to answer again."""
        if self._failure is not None:
            self._failure = replace(self._failure, retry_at=now)

    def fail(self, error: Exception, now: float) -> None:
        """Note that the status is unknown after this error; the write is due again after a pause."""
        self._is_in_flight = False
        self._failure = next_failure(error, self._failure, now, self._timings.status_retry)

    def is_late(self, now: float) -> bool:
        """Return whether the status has been behind for too long. Perhaps nothing can be written."""
        return self._behind is not None and now - self._behind > self._timings.status_grace

    def doubt(self, reach: Reach) -> str | None:
        """Return why the agent cannot vouch for the status; None if it is current, or was until just now.

        While the API server does not answer, the agent's doubts are not read. As soon as it answers, it has them, and
        perhaps the status, too: so a new doubt needs an API server that has answered for as long.
        """
        if self._behind is None:
            return None
        self._is_doubted = self._is_doubted or reach.has_lasted(self._timings.status_grace, since=self._behind)
        if not self._is_doubted:
            return None
        if self._failure is None:
            return "its status cannot be written: the API server has not answered for some seconds"
        return (
            f"its status cannot be written: {plain(self._failure.why, MAX_WHY)}: remove what refuses it, such as an "
            f"admission webhook; the agent retries at least every {self._timings.status_retry.last:.0f} s"
        )

    @property
    def is_settled(self) -> bool:
        """Whether the status holds what is wanted."""
        return self._behind is None

    @property
    def is_gone(self) -> bool:
        """Whether the object no longer exists, according to the API server."""
        return self._failure is not None and self._failure.is_gone
