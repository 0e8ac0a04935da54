"""Find processes of this node by files in memory, which they have opened under a name that says whose they are."""

from __future__ import annotations

import os
from pathlib import Path


def open_files(prefix: str) -> list[tuple[int, Path, str]]:
    """Return (process, path of the file, rest of its name) for each process that has a file with this prefix open."""
    found = ((pid, open_file(pid, prefix)) for pid in all_pids())
    return [(pid, *file) for pid, file in found if file is not None]


def all_pids() -> list[int]:
    """Return the ids of all processes of this node, in ascending order."""
    return sorted(int(process.name) for process in Path("/proc").iterdir() if process.name.isdigit())


def open_file(pid: int, prefix: str) -> tuple[Path, str] | None:
    """Return (path of the file, rest of its name) of a process; ``None`` if it has no such file open."""
    try:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            _, name, rest = os.readlink(descriptor).partition(prefix)
            if name:
                return descriptor, rest.removesuffix(" (deleted)")
    except OSError:  # it ended, or is another user's
        return None
    return None
