"""What may have been meant by a name that is not there."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, there: Iterable[str]) -> str | None:
    """A question with the nearest of the names that are there; ``None`` if none is near."""
    near = difflib.get_close_matches(name, list(there), n=3)
    return f"did you mean {' or '.join(near)}?" if near else None
