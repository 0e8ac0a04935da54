"""When lines of a log were written, as far as the lines tell: Ray itself keeps no times."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone

_TIME = re.compile(rb"[\[(]?(?:[A-Z]{1,8}[ :])?(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,]\d+)?(Z|[+-]\d\d:\d\d)?")


def recent(lines: Iterable[bytes], since: float) -> Iterator[bytes]:
    """Yield the lines of a log that are not older than a time, in seconds since the epoch.

    A line without its own time, such as one of a traceback, belongs to the line before.
    """
    is_old = False
    for line in lines:
        written = written_at(line)
        if written is not None:
            is_old = written < since
        if not is_old:
            yield line


def written_at(line: bytes) -> float | None:
    """Return the time at the beginning of a line, as Ray and Python's logging write it, in seconds since the epoch.

    A time without a zone is UTC, as it is in containers unless TZ is set.
    """
    found = _TIME.match(line)
    if found is None:
        return None
    day, time, zone = (part.decode() if part else "" for part in found.groups())
    try:
        written = datetime.fromisoformat(f"{day}T{time}{zone.replace('Z', '+00:00')}")
    except ValueError:  # such as the 99th of a month
        return None
    return (written if written.tzinfo else written.replace(tzinfo=timezone.utc)).timestamp()
