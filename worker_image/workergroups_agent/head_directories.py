"""Where the head keeps the present session: its `ray start` writes it into the GCS, and those of workers read it."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from workergroups.ray_private import start

_KEY, _NAMESPACE = b"head_directories", b"workergroups"


class HeadDirectories(NamedTuple):
    """What Ray takes from the head's node when a worker starts, by Ray's names."""

    temp_dir: str
    session_dir: str
    state: None = None


def announce(gcs: Any, session_dir: str) -> None:
    """Write them by a client of the GCS."""
    directories = json.dumps([str(Path(session_dir).parent), session_dir]).encode()
    start.put(gcs, _NAMESPACE, _KEY, directories, overwrite=True)


def announced(gcs: Any) -> HeadDirectories | None:
    """Read them, None before they are there."""
    written = start.get(gcs, _NAMESPACE, _KEY)
    return HeadDirectories(*json.loads(written)) if written is not None else None
