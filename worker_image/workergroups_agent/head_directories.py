"""Where the head keeps the present session: its `ray start` writes it into the GCS, and those of workers read it."""

import json
from pathlib import Path
from typing import Any, NamedTuple

_KEY, _NAMESPACE = b"head_directories", b"workergroups"


class HeadDirectories(NamedTuple):
    """What Ray takes from the head's node when a worker starts, by Ray's names."""

    temp_dir: str
    session_dir: str
    state: None = None


def announce(gcs: Any, session_dir: str) -> None:
    """Write them by a client of the GCS."""
    gcs.internal_kv_put(_KEY, json.dumps([str(Path(session_dir).parent), session_dir]).encode(), True, _NAMESPACE)


def announced(gcs: Any) -> HeadDirectories | None:
    """Read them, None before they are there."""
    written = gcs.internal_kv_get(_KEY, _NAMESPACE)
    return HeadDirectories(*json.loads(written)) if written is not None else None
