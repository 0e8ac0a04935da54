"""Where a process is paused for a debugger."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import Any

MAX_TEXT = 512
"""Characters of a path, a name or an error."""


@dataclass(frozen=True)
class Pause:
    """Where a process waits for a debugger, or has one, as the process announces it.

    Of a rank, the agent reports it as `workergroups_api.report.RankPause`. These are two types because the library
    works without pydantic, and because only the agent knows which rank of which pod the process is.
    """

    node_id: str
    """The Ray node that the process is on."""
    file: str
    line: int
    function: str
    directory: str
    """The directory of ``sys.path`` that holds the file's package; empty if none does."""
    error: str
    """The exception, for post-mortem debugging; empty at a breakpoint."""
    port: int
    """Where debugpy listens, on the pod's loopback; 0 for the second or two until it does."""
    since: float
    """Seconds since the epoch, by the clock of the node."""
    is_attached: bool = False
    """Whether a debugger is connected."""

    @property
    def where(self) -> str:
        """The place, and the exception if there is one, for people."""
        what = f" after {self.error}" if self.error else ""
        return f"{self.file}:{self.line} in {self.function}{what}"


_PORTS = 1 << 16
_MAX_LINE = 1 << 31
_MAX_TIME = float(1 << 32)
_TYPES = typing.get_type_hints(Pause)


def parsed(record: dict[str, Any] | None) -> Pause | None:
    """Return the pause that a record describes; ``None`` if no rank of ours can have written it."""
    if record is None or record.keys() != _TYPES.keys():
        return None
    if any(type(value) is not _TYPES[name] for name, value in record.items()):
        return None
    if any(isinstance(value, str) and len(value) > MAX_TEXT for value in record.values()):
        return None
    pause = Pause(**record)
    is_possible = 0 <= pause.port < _PORTS and 0 <= pause.line < _MAX_LINE
    return pause if is_possible and 0 <= pause.since < _MAX_TIME else None
