"""Replace tables in the pages of docs/, each between two marker lines."""

from __future__ import annotations

from pathlib import Path


def put(page: Path, name: str, text: str) -> None:
    """Replace what is between the page's marker lines of that name with the text.

    Raises:
        ValueError: The page lacks these lines.
    """
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    before, found_begin, rest = page.read_text().partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found_begin and found_end):
        raise ValueError(f"{page} must contain the lines {begin.strip()!r} and {end.strip()!r} around the table")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}")
