"""How much memory this container can still use."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_GROUPS = Path("/sys/fs/cgroup")
# Of control groups version 2 and 1: the limit, the usage, and the part of it that the kernel gives back when asked.
_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_inactive_file"),
)


class Memory(NamedTuple):
    """Memory in bytes."""

    limit: int
    free: int


def memory() -> Memory:
    """Return the tighter of the machine's memory and the container's limit, and what is free of it."""
    return min([_of_machine(), *_of_container()], key=lambda each: each.free)


def _of_machine() -> Memory:
    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    total, available = (int(fields[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
    return Memory(total, available)


def _of_container() -> list[Memory]:
    for limit_file, usage_file, reclaimable in _FILES:
        try:
            limit = int((_GROUPS / limit_file).read_text())
            usage = int((_GROUPS / usage_file).read_text())
            lines = (_GROUPS / usage_file).with_name("memory.stat").read_text().splitlines()
            cached = int(dict(line.split() for line in lines).get(reclaimable, 0))
        except (OSError, ValueError):
            continue  # no limit ("max"), or the other version
        return [Memory(limit, limit - usage + cached)]
    return []
