"""Ranges of ranks as users type them. The help needs this module, so it imports little."""

from __future__ import annotations

import re
from collections.abc import Collection

from workergroups_common.ranges import ranges

from .errors import ClientError

_SPAN = re.compile("([0-9]{1,5})(?:-([0-9]{1,5}))?")


def chosen_of(present: Collection[int], wanted: str | None) -> list[int]:
    """Return those of a group's ranks that a range such as ``0-3,7`` names, in order; without a range, all.

    Raises:
        ClientError: The group has no such rank, or the text is not a range.
    """
    chosen = set(present) if wanted is None else numbers(wanted)
    if missing := chosen - set(present):
        raise ClientError(f"there is no rank {ranges(missing)}: the group has ranks {ranges(present) or 'none'}")
    return sorted(chosen)


def numbers(text: str) -> set[int]:
    """Return the numbers of a range such as ``0-3,7``.

    Raises:
        ClientError: The text is not a range.
    """
    found: set[int] = set()
    for part in text.split(","):
        span = _SPAN.fullmatch(part.strip())
        first, last = (int(span[1]), int(span[2] or span[1])) if span else (1, 0)
        if first > last:
            raise ClientError(f"{text!r} is not a range of ranks: write 3, 0-3 or 0-3,7")
        found |= set(range(first, last + 1))
    return found
