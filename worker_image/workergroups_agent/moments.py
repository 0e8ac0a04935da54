"""Times of the GCS, whose records users can write."""

from datetime import datetime, timezone


def moment(seconds: float) -> datetime:
    """Return a number of seconds since the epoch as a time, the nearest of the years 1970 to 2106."""
    return datetime.fromtimestamp(min(max(seconds, 0.0), 1 << 32), timezone.utc)
