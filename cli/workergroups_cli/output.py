"""Print results on standard output, and progress on standard error."""

from __future__ import annotations

import codecs
import os
import re
import sys
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from workergroups_client.waiting import Lasting
from workergroups_common.text import without_controls


def _open_streams() -> None:
    """Make output and errors take any text: the shell may have closed them, and a locale may lack characters."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
        getattr(sys, name).reconfigure(errors="replace")


_open_streams()
_WIDEST = 1_000_000
# Without a terminal, nothing is cut or wrapped, and nothing is redrawn, also if FORCE_COLOR makes rich believe in one.
_ELSEWHERE: dict[str, Any] = {"width": _WIDEST, "force_interactive": False}
out = Console(emoji=False, highlight=False, soft_wrap=True, **({} if sys.stdout.isatty() else _ELSEWHERE))
err = Console(emoji=False, highlight=False, soft_wrap=True, stderr=True, **({} if sys.stderr.isatty() else _ELSEWHERE))
# Of what a program prints, a terminal also gets these. Progress bars need the carriage return.
_COLOURS = re.compile(r"(\x1b\[[0-9;:]*m|\r)")
# The parameter that conceals what follows: it would be copied unseen. The same number within a colour is none.
_CONCEALED = re.compile(r"([34]8;(?:5;[0-9]*|2(?:;[0-9]*){3}))|(?<=[\[;])0*8(?=[;m])")
_BEGUN = re.compile(r"\x1b(\[[0-9;:]{0,99})?\Z")


class Output(str, Enum):
    """The format of a result."""

    text = "text"
    json = "json"


def print_text(text: str, style: str | None = None) -> None:
    """Print a result for people; brackets in it are no markup."""
    out.print(without_controls(text), style=style, markup=False)


class ProgramOutput:
    """Prints what a program has printed, piece by piece, and adds no end of line.

    What is no terminal gets the same bytes. A terminal gets text, colours and carriage returns, and nothing else: other
    sequences could change its title, its clipboard, or lines that are already there, or conceal what they print. It
    shows bytes that are not UTF-8 as in `\\xe9`.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._held = ""

    def print(self, piece: bytes) -> None:
        """Print a piece, but for a character or a sequence that it only begins."""
        if not sys.stdout.isatty():
            print_bytes(sys.stdout, piece)
            return
        text = self._held + self._decoder.decode(piece)
        begun = _BEGUN.search(text)
        text, self._held = (text[: begun.start()], begun[0]) if begun else (text, "")
        sys.stdout.write(_without_sequences(text))
        sys.stdout.flush()


def print_bytes(stream: Any, data: bytes) -> None:
    """Write bytes to standard output or standard error at once."""
    stream.flush()
    stream.buffer.write(data)
    stream.buffer.flush()


def _without_sequences(text: str) -> str:
    parts = _COLOURS.split(text)
    return "".join(
        _CONCEALED.sub(lambda found: found[1] or "28", part) if _COLOURS.fullmatch(part) else without_controls(part)
        for part in parts
    )


def captured(show: Callable[[], None]) -> str:
    """Return what a function would print here, colours included."""
    with out.capture() as printed, err.capture() as noted:
        show()
    return (printed.get() + noted.get()).rstrip("\n")


def complain(error: Exception) -> None:
    """Print why the command fails, on standard error."""
    err.print(f"error: {without_controls(str(error))}", markup=False)


def note(text: str) -> None:
    """Print a note on standard error."""
    err.print(without_controls(text), markup=False, style="dim")


def table(*columns: str, rows: Sequence[Sequence[object]]) -> None:
    """Print columns without lines between them, and without spaces after the last, as kubectl does."""
    made = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        made.add_row(*("-" if cell is None or cell == "" else escape(without_controls(str(cell))) for cell in row))
    for line in out.render_lines(made, pad=False):
        text = Text.assemble(*((segment.text, segment.style or "") for segment in line))
        text.rstrip()
        out.print(text)


class Teller:
    """Shows progress messages: on a terminal in one line that changes, elsewhere a line for each new message."""

    def __init__(self) -> None:
        self._told: set[str] = set()
        self._spinner = err.status("") if err.is_interactive else None

    def __call__(self, sentence: str) -> None:
        """Show a message."""
        if self._spinner is not None and isinstance(sentence, Lasting):
            self.quiet()
            note(sentence)
            return
        if self._spinner is not None:
            self._spinner.update(escape(without_controls(sentence)))
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
