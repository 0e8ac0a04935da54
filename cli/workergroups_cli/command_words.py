"""What the words of a job's command show: that it is quoted as a whole, or names files that only this machine has."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

import typer

from .output import note


def refuse_quoted(command: Sequence[str]) -> None:
    """Refuse a command that is one word with spaces.

    Raises:
        typer.BadParameter: No shell takes it apart, and no program has that name.
    """
    if len(command) == 1 and len(command[0].split()) > 1:
        raise typer.BadParameter(
            f"the command is quoted as a whole, which makes it the name of one program: write -- {command[0]}, or for "
            f"a shell -- sh -c {shlex.quote(command[0])}"
        )


def look_at(command: Sequence[str], *, has_working_dir: bool) -> None:
    """Say that a job gets no files if its command names one of this directory: it would not find that file.

    Raises:
        typer.BadParameter: As of `refuse_quoted`.
    """
    refuse_quoted(command)
    if has_working_dir:
        return
    for word in command:
        # The pool's image may have an absolute path, too.
        if os.path.isfile(word) and not os.path.isabs(word):
            note(f"the job gets no files of this machine, such as {word}: to send this directory, add --working-dir .")
            return
