"""How long an object may take to become ready."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from workergroups_api.conditions import Condition


@dataclass(frozen=True)
class Wait:
    """An object's wait for readiness: since when, and until when."""

    since: datetime
    until: datetime

    def is_over(self, now: datetime) -> bool:
        """Return whether the deadline has passed."""
        return now >= self.until

    def seconds_left(self, now: datetime) -> float:
        """Return the seconds until the deadline, never negative."""
        return max(0.0, (self.until - now).total_seconds())


def wait_for_ready(created: datetime, previous_ready: Condition | None, deadline_seconds: int, now: datetime) -> Wait:
    """Return the wait of an object that is not ready: since it was created, or since it ceased to be ready."""
    if previous_ready is None:
        since = created
    elif previous_ready.status == "True":
        since = now
    else:
        since = previous_ready.last_transition_time
    return Wait(since, since + timedelta(seconds=deadline_seconds))


def clock(moment: datetime) -> str:
    """Return a time for messages: `03:04:05Z`, which is absolute, so that a message does not change as time passes."""
    return moment.astimezone(UTC).strftime("%H:%M:%SZ")
