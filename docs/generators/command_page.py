"""The page of the command line, from the help of every verb."""

from collections.abc import Iterator
from typing import Any

import typer

from workergroups_cli.app import app
from workergroups_cli.command import record
from workergroups_cli.verbs import VERBS, load

from .markdown import code, plain, table

NAME = "workergroups"


def page() -> str:
    """The whole page."""
    command: Any = typer.main.get_command(app)
    command.commands = {verb: load(verb) for verb in VERBS}
    return "\n\n".join(
        [
            "# The command line: every verb and option",
            "Made from the help by `make generate`; [the guide](../command-line.md) shows how the verbs work together.",
            *_section(command, [NAME]),
        ]
    )


def _section(command: Any, path: list[str]) -> Iterator[str]:
    """A command, then those under it. Typer brings its own Click, whose types are not public."""
    context = command.make_context(" ".join(path), [], resilient_parsing=True)
    yield f"{'#' * (len(path) + 1)} `{' '.join(path)}`"
    yield f"```text\n{command.get_usage(context).removeprefix('Usage: ')}\n```"
    if command.help:
        yield plain(command.help.replace("\f", ""))
    rows = [row for row in (_row(each, context) for each in command.get_params(context)) if row]
    if rows:
        yield table(("argument or option", "what it does"), rows)
    for name, below in sorted(getattr(command, "commands", {}).items()):
        if not below.hidden:
            yield from _section(below, [*path, name])


def _row(parameter: Any, context: Any) -> tuple[str, str] | None:
    if getattr(parameter, "hidden", False) or parameter.name == "help":
        return None
    found = record(parameter, context)
    return (code(found[0]), plain(found[1])) if found else None
