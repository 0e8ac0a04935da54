"""What a command and its variables show: quotes around the whole, other bytes than text, and what a job lacks."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

import typer

from .output import note

_EXPANDED = re.compile(r"\$(\w|\{)")


def refuse_bytes(words: Iterable[str]) -> None:
    """Refuse words that are not UTF-8, as all that the cluster gets must be.

    Raises:
        typer.BadParameter: It names the first of them.
    """
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            raise typer.BadParameter(f"{word!r} is not UTF-8, and cannot be sent to the cluster") from error


def refuse_unfit(command: Sequence[str]) -> None:
    """Refuse a command that is one word with spaces, or has words that are not UTF-8.

    Raises:
        typer.BadParameter: No shell takes the word apart, and no program has that name; or as of `refuse_bytes`.
    """
    refuse_bytes(command)
    if len(command) == 1 and len(command[0].split()) > 1:
        raise typer.BadParameter(
            f"the command is quoted as a whole, which makes it the name of one program: write -- {command[0]}, or for "
            f"a shell -- sh -c {shlex.quote(command[0])}"
        )


def refuse_manifests(command: Sequence[str]) -> None:
    """Refuse a command that is a manifest, or nothing but a directory: the user who writes that forgot `--file`.

    Raises:
        typer.BadParameter: It is no program; with the way out.
    """
    # A program may have the name of a directory, such as python.
    is_directory = len(command) == 1 and os.path.isdir(command[0])
    if command and (command[0].endswith((".yaml", ".yml", ".json")) or is_directory):
        raise typer.BadParameter(f"{command[0]} is no program to run: to apply it, write --file {command[0]}")


def note_expanded(variables: Mapping[str, object]) -> None:
    """Say which variables of a job have values that Ray changes: it expands `$NAME` and `${NAME}`."""
    if names := [name for name, value in variables.items() if _EXPANDED.search(str(value))]:
        note(
            f"Ray expands $NAME and ${{NAME}} in the variables of jobs, here in {', '.join(names)}. A Secret by "
            "--env-from reaches the driver as it is"
        )


def look_at(command: Sequence[str], *, has_working_dir: bool) -> None:
    """Say that a job gets no files if its command names one of this directory: it would not find that file.

    Raises:
        typer.BadParameter: As of `refuse_unfit`.
    """
    refuse_unfit(command)
    if has_working_dir:
        return
    for word in command:
        # The pool's image may have an absolute path, too.
        if os.path.isfile(word) and not os.path.isabs(word):
            note(f"the job gets no files of this machine, such as {word}: to send this directory, add --working-dir .")
            return
