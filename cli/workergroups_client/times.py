"""Timestamps of the API server, and durations as kubectl writes them."""

from __future__ import annotations

from datetime import datetime, timezone


def moment(text: str) -> datetime:
    """Parse a timestamp; the standard library of Python 3.10 does not accept the Z."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def is_moment(value: object) -> bool:
    """Return whether a value is a timestamp with its time zone."""
    try:
        return isinstance(value, str) and moment(value).tzinfo is not None
    except ValueError:
        return False


def age(since: datetime | float | None) -> str:
    """Return how long ago that was, as kubectl writes it."""
    if since is None:
        return "-"
    then = since if isinstance(since, datetime) else datetime.fromtimestamp(since, timezone.utc)
    return duration((datetime.now(timezone.utc) - then).total_seconds())


def duration(seconds: float) -> str:
    """Return a duration in its two largest units."""
    whole = max(0, int(seconds))
    days, hours, minutes = whole // 86400, whole // 3600 % 24, whole // 60 % 60
    if days:
        return f"{days}d{hours}h"
    if hours:
        return f"{hours}h{minutes}m"
    return f"{minutes}m{whole % 60}s" if minutes else f"{whole}s"
