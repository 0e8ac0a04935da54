"""Which ranks are paused for a debugger, as they announce in Ray's control service (the GCS)."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from workergroups import announcements
from workergroups.ray_private import key_value_store

KV_NAMESPACE = "workergroups-pauses"
"""The namespace of the key-value store; the keys are actor ids."""
MAX_BYTES = 16 * 1024
"""The largest record."""
MAX_TEXT = 512
"""Characters of a path, a name or an error."""


@dataclass(frozen=True)
class Pause:
    """Where a rank waits for a debugger, or has one, as the rank announces it.

    The agent reports it as `workergroups_api.report.RankPause`. These are two types because the library works without
    pydantic, and because only the agent knows which rank of which pod the process is.
    """

    node_id: str
    """The Ray node that the rank is on."""
    file: str
    line: int
    function: str
    directory: str
    """The directory of ``sys.path`` that holds the file's package; empty if none does."""
    error: str
    """The exception, for post-mortem debugging; empty at a breakpoint."""
    port: int
    """Where debugpy listens, on the rank's loopback; 0 for the second or two until it does."""
    since: float
    """Seconds since the epoch, by the clock of the rank's node."""
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


def announce(actor_id: str, pause: Pause) -> None:
    """Announce where the rank with this actor id is paused."""
    announcements.announce(KV_NAMESPACE, actor_id, dataclasses.asdict(pause))


def withdraw(actor_id: str) -> None:
    """Remove the announcement of a rank that continues."""
    announcements.forget(KV_NAMESPACE, actor_id)


def withdraw_all(actor_ids: Iterable[str]) -> None:
    """Remove the announcements of dead ranks."""
    for actor_id in _announced_ids().intersection(actor_ids):
        withdraw(actor_id)


def announced(actor_ids: Iterable[str] | None = None) -> dict[str, Pause]:
    """Return the pauses of these ranks, or of all, by actor id. Those of dead ranks are included until withdrawn."""
    ids = _announced_ids() if actor_ids is None else _announced_ids().intersection(actor_ids)
    found = {actor_id: parsed(announcements.current(KV_NAMESPACE, actor_id)) for actor_id in ids}
    return {actor_id: pause for actor_id, pause in found.items() if pause is not None}


def _announced_ids() -> set[str]:
    return set(key_value_store.keys(KV_NAMESPACE))


def read(data: bytes) -> Pause | None:
    """Return the pause in a record of the key-value store; ``None`` if no rank of ours can have written it."""
    return parsed(announcements.read(data)) if len(data) <= MAX_BYTES else None


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
