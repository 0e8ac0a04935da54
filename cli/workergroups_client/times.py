"""Moments, as the API server writes them."""

from __future__ import annotations

from datetime import datetime


def moment(text: str) -> datetime:
    """In Python 3.10, the standard library does not know the Z."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
