"""The files that Ray's processes write on the nodes, read through Ray's own log service."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .errors import ClientError, NotFoundError
from .ray_api import RayApi

LINES = 1000
"""From the end of each file."""
MOST_AT_ONCE = 80
"""Ray serves about a hundred requests at once."""


@dataclass(frozen=True)
class LogFile:
    """One file: of an actor, or by its name on a node."""

    query: Mapping[str, str]

    @classmethod
    def of_actor(cls, actor_id: str, suffix: str) -> LogFile:
        """What an actor's process writes to standard output (``out``) or standard error (``err``)."""
        return cls({"actor_id": actor_id, "suffix": suffix})

    @classmethod
    def on_node(cls, node_id: str, name: str) -> LogFile:
        """A file by its name."""
        return cls({"node_id": node_id, "filename": name})


def names_on_node(ray: RayApi, node_id: str) -> list[str]:
    """The files that a node has."""
    by_component = ray.get("/api/v0/logs", node_id=node_id)["data"]["result"]
    return sorted(name for names in by_component.values() for name in names)


def read(ray: RayApi, files: Mapping[str, list[LogFile]], *, follow: bool) -> Iterator[tuple[str, bytes]]:
    """Lines of several files, each with the label that its file has in the mapping.

    Without ``follow`` one file after the other; with it from all at once, as they are written, without an end.
    """
    if not follow:
        for label, parts in files.items():
            for file in parts:
                yield from ((label, line) for line in _lines(ray, file, "file"))
        return
    count = sum(map(len, files.values()))
    if count > MOST_AT_ONCE:
        raise ClientError(f"{count} files cannot be followed at once, {MOST_AT_ONCE} can: choose some with --rank")
    lines: queue.SimpleQueue[tuple[str, bytes] | None] = queue.SimpleQueue()
    for label, parts in files.items():
        for file in parts:
            threading.Thread(target=_pour, args=(ray, label, file, lines), daemon=True).start()
    for _ in range(count):
        while (line := lines.get()) is not None:
            yield line


def _pour(ray: RayApi, label: str, file: LogFile, lines: queue.SimpleQueue[tuple[str, bytes] | None]) -> None:
    try:
        for line in _lines(ray, file, "stream"):
            lines.put((label, line))
    except ClientError as error:
        lines.put((label, f"the log ends here: {error}".encode()))
    finally:
        lines.put(None)


def _lines(ray: RayApi, file: LogFile, way: str) -> Iterator[bytes]:
    rest = b""
    try:
        for piece in ray.stream(f"/api/v0/logs/{way}", lines=LINES, **file.query):
            *whole, rest = (rest + piece).split(b"\n")
            yield from whole
    except NotFoundError:
        return
    if rest:
        yield rest
