"""Checkpoints in a directory that the driver and all ranks share.

Each time that a driver restores the ranks, it begins an attempt, with a directory of its own, and the ranks write only
there. So a rank of an old incarnation that still writes changes nothing that counts. The incarnation's own number would
not do for this: it begins again if the group is deleted and recreated, and stays the same if the driver is restarted.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def begin_attempt(directory: Path) -> Path:
    """Create the directory of the next attempt. If two drivers begin at once, each gets its own."""
    directory.mkdir(parents=True, exist_ok=True)
    while True:
        number = max((int(path.name) for path in directory.glob("[0-9]*")), default=0) + 1
        attempt = directory / f"{number:06d}"
        try:
            attempt.mkdir()
        except FileExistsError:
            continue
        return attempt


def save(attempt: Path, step: int, state: dict[str, Any]) -> None:
    """Write the state after that many steps, so that the file is complete or does not exist, also after a power cut."""
    path = attempt / f"{step:08d}.json"
    unfinished = attempt / f"{path.name}.{os.getpid()}"
    with unfinished.open("w") as file:
        json.dump({"step": step, **state}, file)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    _sync(attempt)


def latest(directory: Path) -> Path | None:
    """Return the last checkpoint of the latest attempt that has one; ``None`` if there is none."""
    return max(directory.glob("[0-9]*/*.json"), default=None)


def load(path: Path) -> dict[str, Any]:
    """Return the state and its step. JSON keeps every bit of Python's floats."""
    state: dict[str, Any] = json.loads(path.read_text())
    return state


def _sync(directory: Path) -> None:
    """Have the file's new name written to the disk."""
    opened = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
