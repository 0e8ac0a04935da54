"""Let the driver's error for an exception have the number of the rank that raised it."""

from __future__ import annotations

import re
from typing import Any

from ray import exceptions

from workergroups.errors import RankRaisedError

UNREADABLE: type[Exception] = getattr(exceptions, "UnserializableException", exceptions.RayTaskError)
"""What Ray raises for an exception whose class this process cannot load; older versions of Ray have none."""
# Before the user's text, at the start of a line or of what Ray quotes of an exception that cannot be loaded.
_RAISED_BY = re.compile(r"(?:^|RayTaskError: )rank (\d{1,9}) of \d{1,9} of group '([^'\n]*)'", re.MULTILINE)


def who_raised(rank: int, world_size: int, group: str) -> str:
    """Return how the text of a rank's exceptions begins; `raised` reads it."""
    return f"rank {rank} of {world_size} of group '{group}'"


def raised(error: Any) -> Exception:
    """Return Ray's error for an exception, which becomes a `RankRaisedError` as well if a rank raised it."""
    named: Exception = error
    who = _RAISED_BY.search(str(error))
    if who is not None and not isinstance(error, RankRaisedError):
        name = f"{RankRaisedError.__name__}({type(getattr(error, 'cause', error)).__name__})"
        # The same object: Ray's has the traceback, and what its class has from the exception's.
        error.__class__ = type(name, (RankRaisedError, type(error)), {"__module__": RankRaisedError.__module__})
        error.rank, error.group = int(who[1]), who[2]
    return named
