"""How long an object may take to become ready."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


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


def wait_for_ready(deadline_before: datetime | None, deadline_seconds: int, now: datetime) -> Wait:
    """Return the wait of an object that is not ready.

    It continues if there was a deadline for this generation of the spec, else it begins now: the object is new, has
    ceased to be ready, has another spec, or could not become ready until now.
    """
    seconds = timedelta(seconds=deadline_seconds)
    # Whole seconds, as conditions have them.
    until = deadline_before or now.replace(microsecond=0) + seconds
    return Wait(until - seconds, until)


def date_and_time(moment: datetime) -> str:
    """Return a time with its date, for messages about what may last for days."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def clock(moment: datetime) -> str:
    """Return a time for messages: `03:04:05Z`, which is absolute, so that a message does not change as time passes."""
    return moment.astimezone(UTC).strftime("%H:%M:%SZ")
