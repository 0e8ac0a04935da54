"""Which ranks are paused for a debugger, as they say themselves in Ray's control service (the GCS)."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from workergroups import announcements
from workergroups.ray_private import key_value_store

KV_NAMESPACE = "workergroups-pauses"
"""Of the key-value store; the keys are actor ids."""
MAX_BYTES = 16 * 1024
"""Of a record."""
MAX_TEXT = 512
"""Of a path, a name or an error, in characters."""


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
    """The part of the file's path that is the root of its package; empty if it is none of ``sys.path``."""
    error: str
    """The exception that is looked at after it was raised; empty for a breakpoint."""
    port: int
    """Where debugpy listens, on the rank's loopback; 0 for the second or two until it does."""
    since: float
    """Seconds since the epoch, by the clock of the rank's node."""
    is_attached: bool = False
    """Whether somebody has come in."""

    @property
    def where(self) -> str:
        """For people."""
        what = f" after {self.error}" if self.error else ""
        return f"{self.file}:{self.line} in {self.function}{what}"


_PORTS = 1 << 16
_MAX_LINE = 1 << 31
_MAX_TIME = float(1 << 32)
_TYPES = typing.get_type_hints(Pause)


def announce(actor_id: str, pause: Pause) -> None:
    """Make this the pause of the rank that is this actor."""
    announcements.announce(KV_NAMESPACE, actor_id, dataclasses.asdict(pause))


def withdraw(actor_id: str) -> None:
    """The rank goes on."""
    announcements.forget(KV_NAMESPACE, actor_id)


def withdraw_all(actor_ids: Iterable[str]) -> None:
    """Of ranks that are dead."""
    for actor_id in _announced_ids().intersection(actor_ids):
        withdraw(actor_id)


def announced(actor_ids: Iterable[str] | None = None) -> dict[str, Pause]:
    """The pauses of these ranks, or of all, by actor id; of dead ones too, until somebody withdraws them."""
    ids = _announced_ids() if actor_ids is None else _announced_ids().intersection(actor_ids)
    found = {actor_id: parsed(announcements.current(KV_NAMESPACE, actor_id)) for actor_id in ids}
    return {actor_id: pause for actor_id, pause in found.items() if pause is not None}


def _announced_ids() -> set[str]:
    return set(key_value_store.keys(KV_NAMESPACE))


def read(data: bytes) -> Pause | None:
    """The pause in a record of the key-value store; ``None`` for what no rank of ours has written."""
    return parsed(announcements.read(data)) if len(data) <= MAX_BYTES else None


def parsed(record: dict[str, Any] | None) -> Pause | None:
    """The pause that is written there; ``None`` for what no rank of ours has written."""
    if record is None or record.keys() != _TYPES.keys():
        return None
    if any(type(value) is not _TYPES[name] for name, value in record.items()):
        return None
    if any(isinstance(value, str) and len(value) > MAX_TEXT for value in record.values()):
        return None
    pause = Pause(**record)
    is_possible = 0 <= pause.port < _PORTS and 0 <= pause.line < _MAX_LINE
    return pause if is_possible and 0 <= pause.since < _MAX_TIME else None
