"""How far the status of each object is behind what is reported of it: pure bookkeeping of writes and their failures."""

from dataclasses import dataclass, replace

from workergroups_agent.reporter.follow import describe
from workergroups_agent.reporter.subtrees import StatusSubtree
from workergroups_api.backoff import Backoff
from workergroups_api.text import plain

# How long the status may be behind the reports before the agent no longer vouches for it.
GRACE_SECONDS = 2.0
# After a failure, and at most after several in a row.
FIRST_RETRY_SECONDS = 0.5
LAST_RETRY_SECONDS = 30.0
# Of the API server's words.
MAX_WHY = 150


@dataclass(frozen=True)
class Failure:
    """A write that failed, and when to try again."""

    why: str
    status: int | None
    retry_at: float
    # How many writes in a row have failed.
    count: int
    is_gone: bool


def next_failure(error: Exception, before: Failure | None, now: float) -> Failure:
    """Return what follows from an error. Of errors of one kind the first one's words stay, since they may vary."""
    status = getattr(error, "status", None)
    count = 1 if before is None else before.count + 1
    delay = LAST_RETRY_SECONDS if is_gone(error) else Backoff(FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS).after(count)
    is_same = before is not None and before.status == status
    why = before.why if before is not None and is_same else describe(error)
    return Failure(why, status, now + delay, count, is_gone(error))


def is_gone(error: Exception) -> bool:
    """Whether the object is no longer there, or another one has its name."""
    status = getattr(error, "status", None)
    return status == 404 or (status == 409 and "uid" in describe(error).lower())


class Write:
    """What should be in one object's status, and what is known to be."""

    def __init__(self, wanted: StatusSubtree, now: float) -> None:
        self._wanted = wanted
        # None as long as nobody knows what the API server has.
        self._written: StatusSubtree | None = None
        # Since when the status has not been what is wanted; None if it is.
        self._behind: float | None = now
        self._is_in_flight = False
        # When something else than what is in flight was wanted first.
        self._changed: float | None = None
        self._failure: Failure | None = None

    def want(self, subtree: StatusSubtree, now: float) -> None:
        """Take note of what should be in the status now."""
        if subtree == self._wanted:
            return
        self._wanted = subtree
        if subtree == self._written:
            self._behind = None
        elif self._behind is None:
            self._behind = now
        if self._changed is None:
            self._changed = now
        if self._failure is not None:  # What the API server refused may not be what it refuses now.
            retry_at = min(self._failure.retry_at, now + FIRST_RETRY_SECONDS)
            self._failure = replace(self._failure, retry_at=retry_at)

    def is_due(self, now: float) -> bool:
        """Whether to write now."""
        if self._is_in_flight or self._behind is None:
            return False
        return self._failure is None or self._failure.retry_at <= now

    def begin(self) -> StatusSubtree:
        """Return what to write; until `succeed` or `fail`, nobody knows what the API server has."""
        self._is_in_flight, self._written, self._changed = True, None, None
        return self._wanted

    def succeed(self, subtree: StatusSubtree) -> None:
        """Take note that the status holds the subtree, which was wanted when the write began."""
        self._is_in_flight, self._written, self._failure = False, subtree, None
        self._behind = None if subtree == self._wanted else self._changed

    def fail(self, error: Exception, now: float) -> None:
        """Take note that nobody knows what the status holds; `is_due` is true again after a while."""
        self._is_in_flight, self._failure = False, next_failure(error, self._failure, now)

    def doubt(self, now: float) -> str | None:
        """Return why nobody can vouch for the status; None as long as it is what is wanted, or was until just now."""
        if self._behind is None or now - self._behind <= GRACE_SECONDS:
            return None
        if self._failure is None:
            return "its status cannot be written: the API server has not answered for some seconds"
        return (
            f"its status cannot be written: {plain(self._failure.why, MAX_WHY)}: remove what refuses it, such as an "
            f"admission webhook; the agent retries at least every {LAST_RETRY_SECONDS:.0f} s"
        )

    @property
    def is_settled(self) -> bool:
        """Whether the status is what is wanted."""
        return self._behind is None

    @property
    def is_gone(self) -> bool:
        """Whether there is no such object any more, as the API server says."""
        return self._failure is not None and self._failure.is_gone
