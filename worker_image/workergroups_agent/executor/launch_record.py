"""How a launch went, as JSON in the GCS's key-value store.

The launching task runs user code, so the executor does not unpickle its result, but reads this record. User code that
writes here can only misreport its own launch.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from workergroups.ray_private import key_value_store
from workergroups_agent.launch_state import LaunchKey
from workergroups_api.vocabulary import Word
from workergroups_common.bounded_json import Limits, parse
from workergroups_common.text import plain

MAX_MESSAGE = 1024
_LIMITS = Limits(size=16 * 1024, depth=4, values=100)
_NAMESPACE = "workergroups-launches"
_KEY = re.compile("([^/]+)/([0-9]{1,9})/([0-9]{1,9})/")


class LaunchStep(Word):
    """How far a launching task is."""

    # The pod does not have what the ranks need yet; the message says what.
    WAITING = "Waiting"
    # It loads the user's class.
    LOADING = "Loading"
    # Its process took too long to start; the next may be faster.
    LATE = "Late"
    # It has created all ranks.
    CREATED = "Created"
    # It has given up.
    FAILED = "Failed"


@dataclass(frozen=True)
class Record:
    """What a launching task reports about itself."""

    attempt: str
    state: LaunchStep
    message: str = ""


def write(key: LaunchKey, record: Record) -> None:
    """Write the record; called by the launching task."""
    fields = asdict(record) | {"message": plain(record.message, MAX_MESSAGE)}
    key_value_store.put(_NAMESPACE, _name(key, "record"), json.dumps(fields).encode())


def claim(key: LaunchKey, attempt: str) -> bool:
    """Claim the launch; the launching task creates ranks only if this returns True.

    Only one attempt may create them, since the ranks of two would have the same names.
    """
    return key_value_store.put_if_absent(_NAMESPACE, _name(key, "claim"), attempt.encode())


def read(key: LaunchKey) -> Record | None:
    """Return the record, None if there is none that can be read."""
    data = _get(key, "record")
    if data is None:
        return None
    try:
        raw = parse(data, _LIMITS)
        state = LaunchStep(raw["state"])
    except (KeyError, TypeError, ValueError):
        return None
    return Record(str(raw.get("attempt")), state, plain(str(raw.get("message", "")), MAX_MESSAGE))


def claimed_by(key: LaunchKey) -> str | None:
    """Return the attempt that began to create ranks, None if none did."""
    data = _get(key, "claim")
    return None if data is None else data[:64].decode(errors="replace")


def forget(key: LaunchKey) -> None:
    """Remove record and claim of a launch."""
    for kind in ("record", "claim"):
        key_value_store.delete(_NAMESPACE, _name(key, kind))


def known() -> set[LaunchKey]:
    """Return the launches that have a record or a claim, those of earlier executors included."""
    return set(_keys(key_value_store.keys(_NAMESPACE)))


def _name(key: LaunchKey, kind: str) -> str:
    return "/".join(map(str, (*key, kind)))


def _keys(names: list[str]) -> Iterator[LaunchKey]:
    for name in names:
        match = _KEY.match(name)
        if match is not None:
            yield match[1], int(match[2]), int(match[3])


def _get(key: LaunchKey, kind: str) -> bytes | None:
    return key_value_store.get(_NAMESPACE, _name(key, kind))
