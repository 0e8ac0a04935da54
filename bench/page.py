"""Tables in the pages of docs/, each between two lines of its own."""

from __future__ import annotations

from pathlib import Path


def put(page: Path, name: str, text: str) -> None:
    """Put the text between the page's lines of that name, in place of what was there.

    Raises:
        ValueError: The page has no such lines.
    """
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    before, found_begin, rest = page.read_text().partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found_begin and found_end):
        raise ValueError(f"{page} must hold the lines {begin.strip()!r} and {end.strip()!r}: the table goes between")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}")
