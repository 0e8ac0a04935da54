"""What the agent tells drivers through Ray's control service (the GCS): JSON records, by name."""

from __future__ import annotations

import json
from typing import Any

from workergroups.ray_private import key_value_store


def announce(namespace: str, name: str, record: dict[str, Any]) -> None:
    """Make the record the current one of that name; write nothing if it is already."""
    data = json.dumps(record).encode()
    if key_value_store.get(namespace, name) != data:
        key_value_store.put(namespace, name, data)


def current(namespace: str, name: str) -> dict[str, Any] | None:
    """Return the current record of that name; ``None`` if there is none that can be read."""
    data = key_value_store.get(namespace, name)
    return None if data is None else read(data)


def read(data: bytes) -> dict[str, Any] | None:
    """Parse a record; return ``None`` if it cannot be read."""
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):  # no JSON, or no text at all
        return None
    return record if isinstance(record, dict) else None


def is_count(value: Any) -> bool:
    """Return whether the value is an integer of at least 1."""
    return type(value) is int and value >= 1
