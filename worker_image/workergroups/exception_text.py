"""The exception in a text that contains its traceback."""

from __future__ import annotations


def exception_line(text: str) -> str:
    """Return the last line of a traceback: the exception itself."""
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""
