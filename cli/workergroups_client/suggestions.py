"""Suggest similar names for one that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, there: Iterable[str]) -> str | None:
    """Return a question with the most similar of the existing names; ``None`` if none is similar."""
    near = difflib.get_close_matches(name, list(there), n=3)
    return f"did you mean {' or '.join(near)}?" if near else None
