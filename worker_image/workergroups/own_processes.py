"""Find processes of this node by files in memory, which they have opened under a name that says whose they are."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def open_files(prefix: str) -> list[tuple[int, Path, str]]:
    """Return (process, path of the file, rest of its name) for each process that has a file with this prefix open."""
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # it ended, or is another user's
            for descriptor in (process / "fd").iterdir():
                _, name, rest = os.readlink(descriptor).partition(prefix)
                if name:
                    found.append((int(process.name), descriptor, rest.removesuffix(" (deleted)")))
                    break
    return found
