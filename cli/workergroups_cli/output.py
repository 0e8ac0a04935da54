"""Print results on standard output, and progress on standard error."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from datetime import datetime, timezone
from enum import Enum
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


class Output(str, Enum):
    """The format of a result."""

    text = "text"
    json = "json"


def print_json(result: Any) -> None:
    """Print a result for scripts."""
    print(json.dumps(result, default=_plain, indent=2))


def print_text(text: str, style: str | None = None) -> None:
    """Print a result for people; brackets in it are no markup."""
    out.print(text, style=style, markup=False)


def note(text: str) -> None:
    """Print a note on standard error."""
    err.print(text, markup=False, style="dim")


def table(*columns: str, rows: Sequence[Sequence[object]]) -> None:
    """Print columns without lines between them, as kubectl does."""
    made = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        made.add_row(*("-" if cell is None or cell == "" else escape(str(cell)) for cell in row))
    # Without a terminal, nothing is cut or wrapped.
    (out if out.is_terminal else Console(width=1000, highlight=False)).print(made)


class Teller:
    """Shows progress messages: on a terminal in one line that changes, elsewhere a line for each new message."""

    def __init__(self) -> None:
        self._told: set[str] = set()
        self._spinner = err.status("") if err.is_terminal else None

    def __call__(self, sentence: str) -> None:
        """Show a message."""
        if self._spinner is not None:
            self._spinner.update(escape(sentence))
            self._spinner.start()
            return
        alike = re.sub(r"\d+", "0", sentence)
        if alike not in self._told:
            self._told.add(alike)
            note(sentence)

    def quiet(self) -> None:
        """Remove the line, so that it does not mix with what is printed next."""
        if self._spinner is not None:
            self._spinner.stop()

    def __enter__(self) -> Teller:
        return self

    def __exit__(self, *_: object) -> None:
        self.quiet()


def age(since: datetime | float | None) -> str:
    """Return how long ago that was, as kubectl writes it."""
    if since is None:
        return "-"
    then = since if isinstance(since, datetime) else datetime.fromtimestamp(since, timezone.utc)
    return duration((datetime.now(timezone.utc) - then).total_seconds())


def duration(seconds: float) -> str:
    """Return a duration in its two largest units."""
    whole = max(0, int(seconds))
    days, hours, minutes = whole // 86400, whole // 3600 % 24, whole // 60 % 60
    if days:
        return f"{days}d{hours}h"
    if hours:
        return f"{hours}h{minutes}m"
    return f"{minutes}m{whole % 60}s" if minutes else f"{whole}s"


def _plain(value: Any) -> Any:
    if hasattr(value, "to_json"):  # a model of the API, not imported here because --help must not wait for pydantic
        return value.to_json()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(type(value).__name__)
