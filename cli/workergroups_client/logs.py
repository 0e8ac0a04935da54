"""Read the log files of Ray's processes on the nodes through Ray's own log service."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .errors import ClientError
from .ray_api import RayApi

LINES = 1000
"""Lines to read from the end of each file."""
MOST_AT_ONCE = 80
"""Ray serves about a hundred requests at once."""


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


def read(ray: RayApi, files: Mapping[str, list[LogFile]], *, follow: bool) -> Iterator[tuple[str, bytes]]:
    """Yield the lines of several files, each with the label of its file in the mapping.

    Without ``follow``, read one file after the other; with it, read all at once as they are written, without an end.
    If one of several files cannot be read, yield a line with the reason.
    """
    sources = [(label, file) for label, parts in files.items() for file in parts]
    if len(sources) == 1:
        ((label, file),) = sources
        yield from ((label, line) for line in _lines(ray, file, follow))
    elif not follow:
        for label, file in sources:
            yield from ((label, line) for line in _lines_or_why_not(ray, file, follow))
    else:
        yield from _all_at_once(ray, sources)


def _all_at_once(ray: RayApi, sources: list[tuple[str, LogFile]]) -> Iterator[tuple[str, bytes]]:
    if len(sources) > MOST_AT_ONCE:
        raise ClientError(f"{len(sources)} files cannot be followed at once, only {MOST_AT_ONCE}: choose some ranks")
    lines: queue.SimpleQueue[tuple[str, bytes] | None] = queue.SimpleQueue()

    def pour(label: str, file: LogFile) -> None:
        for line in _lines_or_why_not(ray, file, follow=True):
            lines.put((label, line))
        lines.put(None)

    for source in sources:
        threading.Thread(target=pour, args=source, daemon=True).start()
    for _ in sources:
        while (line := lines.get()) is not None:
            yield line


def _lines_or_why_not(ray: RayApi, file: LogFile, follow: bool) -> Iterator[bytes]:
    try:
        yield from _lines(ray, file, follow)
    except ClientError as error:
        yield f"(the rest of this log cannot be read: {error})".encode()


def _lines(ray: RayApi, file: LogFile, follow: bool) -> Iterator[bytes]:
    rest = b""
    for piece in ray.stream(f"/api/v0/logs/{'stream' if follow else 'file'}", lines=LINES, **file.query):
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
    if rest:
        yield rest
