"""The directories of the head's session: `ray start` writes them to the GCS on the head, and reads them on workers."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from workergroups.ray_private import start

_KEY, _NAMESPACE = b"head_directories", b"workergroups"


class HeadDirectories(NamedTuple):
    """What Ray reads of the head's node when a worker starts, under Ray's names."""

    temp_dir: str
    session_dir: str
    state: None = None


def announce(gcs: Any, session_dir: str) -> None:
    """Write the directories through a client of the GCS."""
    directories = json.dumps([str(Path(session_dir).parent), session_dir]).encode()
    start.put(gcs, _NAMESPACE, _KEY, directories, overwrite=True)


def announced(gcs: Any) -> HeadDirectories | None:
    """Return the directories, None before the head has written them."""
    written = start.get(gcs, _NAMESPACE, _KEY)
    return HeadDirectories(*json.loads(written)) if written is not None else None
