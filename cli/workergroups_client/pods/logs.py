"""Read the log files of Ray's processes on the nodes through Ray's own log service.

When lines were written is known as far as the lines tell: Ray itself keeps no times.
"""

from __future__ import annotations

import queue
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

from ..errors import ClientError
from ..ray_cluster.ray_api import RayApi

LINES = 1000
"""Lines to read from the end of each file, by default."""
LINES_SINCE = 100_000
"""Lines to read from the end of each file to find those since a time."""
MOST_LINES = 2**31 - 1
"""More than any file has; Ray takes no number that is much larger."""
MOST_AT_ONCE = 80
"""Ray serves about a hundred requests at once."""
_TIME = re.compile(rb"[\[(]?(?:[A-Z]{1,8}[ :])?(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,]\d+)?(Z|[+-]\d\d:\d\d)?")


@dataclass(frozen=True)
class LogFile:
    """A log file: one of an actor, or one of a node by its name."""

    query: Mapping[str, str]

    @classmethod
    def of_actor(cls, actor_id: str, suffix: str) -> LogFile:
        """Return the standard output (suffix ``out``) or standard error (``err``) of an actor's process."""
        return cls({"actor_id": actor_id, "suffix": suffix})

    @classmethod
    def on_node(cls, node_id: str, name: str) -> LogFile:
        """Return a file of a node by its name."""
        return cls({"node_id": node_id, "filename": name})


def names_on_node(ray: RayApi, node_id: str) -> list[str]:
    """Return the names of the log files of a node."""
    by_component = ray.get("/api/v0/logs", node_id=node_id)["data"]["result"]
    return sorted(name for names in by_component.values() for name in names)


@dataclass(frozen=True)
class LogPart:
    """Which lines of each file to read.

    Args:
        follow: Continue with new lines, without an end.
        tail: How many lines to read from the end of each file; by default 1000, or 100,000 with ``since``.
        since: Leave out lines that are older, in seconds since the epoch; see `recent`.
    """

    follow: bool = False
    tail: int | None = None
    since: float | None = None

    @property
    def lines(self) -> int:
        """How many lines to read from the end of each file."""
        if self.tail is not None:
            return min(self.tail, MOST_LINES)
        return LINES if self.since is None else LINES_SINCE

    def recent(self, lines: Iterable[bytes]) -> Iterable[bytes]:
        """Return these lines without those that are older than ``since``."""
        return lines if self.since is None else recent(lines, self.since)


def read(ray: RayApi, files: Mapping[str, list[LogFile]], part: LogPart) -> Iterator[tuple[str, bytes]]:
    """Yield the lines of several files, each with the label of its file in the mapping.

    Without ``follow``, read one file after the other; with it, read all at once as they are written, without an end.
    If one of several files cannot be read, yield a line with the reason.
    """
    sources = [(label, file) for label, parts in files.items() for file in parts]
    if len(sources) == 1:
        ((label, file),) = sources
        yield from ((label, line) for line in _lines(ray, file, part))
    elif not part.follow:
        for label, file in sources:
            yield from ((label, line) for line in _lines_or_why_not(ray, file, part))
    else:
        yield from _all_at_once(ray, sources, part)


def _all_at_once(ray: RayApi, sources: list[tuple[str, LogFile]], part: LogPart) -> Iterator[tuple[str, bytes]]:
    if len(sources) > MOST_AT_ONCE:
        raise ClientError(f"{len(sources)} files cannot be followed at once, only {MOST_AT_ONCE}: choose some ranks")
    lines: queue.SimpleQueue[tuple[str, bytes] | None] = queue.SimpleQueue()

    def pour(label: str, file: LogFile) -> None:
        for line in _lines_or_why_not(ray, file, part):
            lines.put((label, line))
        lines.put(None)

    for source in sources:
        threading.Thread(target=pour, args=source, daemon=True).start()
    for _ in sources:
        while (line := lines.get()) is not None:
            yield line


def _lines_or_why_not(ray: RayApi, file: LogFile, part: LogPart) -> Iterator[bytes]:
    try:
        yield from _lines(ray, file, part)
    except ClientError as error:
        yield f"(the rest of this log cannot be read: {error})".encode()


def _lines(ray: RayApi, file: LogFile, part: LogPart) -> Iterator[bytes]:
    yield from part.recent(_all_lines(ray, file, part))


def _all_lines(ray: RayApi, file: LogFile, part: LogPart) -> Iterator[bytes]:
    begun: list[bytes] = []  # the pieces of a line, which may have gigabytes
    for piece in ray.stream(f"/api/v0/logs/{'stream' if part.follow else 'file'}", lines=part.lines, **file.query):
        for number, text in enumerate(piece.split(b"\n")):
            if number:
                yield b"".join(begun)
                begun.clear()
            begun.append(text)
    if any(begun):
        yield b"".join(begun)


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
