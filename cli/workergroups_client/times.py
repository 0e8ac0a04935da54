"""Timestamps of the API server."""

from __future__ import annotations

from datetime import datetime


def moment(text: str) -> datetime:
    """Parse a timestamp; the standard library of Python 3.10 does not accept the Z."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
