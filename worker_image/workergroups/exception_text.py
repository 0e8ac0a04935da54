"""What an exception said, out of the text in which it arrives."""

from __future__ import annotations


def exception_line(text: str) -> str:
    """The last line of a traceback: the exception itself."""
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""
