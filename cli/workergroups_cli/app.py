"""The command with all its verbs, and its exit codes after errors."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from workergroups_api.vocabulary import is_on
from workergroups_client.errors import ClientError

from .exit_codes import FAILED, INTERRUPTED
from .options import Context, Namespace
from .output import complain
from .signals import leave_no_files
from .verbs import Verbs

_TRACEBACK = "WORKERGROUPS_TRACEBACK"

app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Worker groups on Kubernetes: pools, groups and jobs by their names.",
)


def _say_version(is_asked: bool) -> None:
    if is_asked:
        from importlib import metadata

        typer.echo(metadata.version("workergroups"))
        raise typer.Exit


@app.callback()
def _before_the_verb(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version.")
    ] = False,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    # As with kubectl, --namespace and --context may also precede the verb.
    ctx.default_map = _for_all_verbs(ctx.command, {"namespace": namespace, "context": context})


def _for_all_verbs(command: Any, defaults: dict[str, str | None]) -> dict[str, Any]:
    """Return the defaults of each command under this one, as a default map of Click."""
    verbs = getattr(command, "commands", None)
    return {name: _for_all_verbs(verb, defaults) for name, verb in verbs.items()} if verbs else defaults


def main() -> None:
    """Run the command; print an error as a message without a traceback, unless WORKERGROUPS_TRACEBACK is on."""
    if sys.stdin is None:  # the shell has closed it
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY))
    leave_no_files()
    try:
        app()
    except ClientError as error:
        complain(error)
        sys.exit(FAILED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # `| head`
        sys.stderr.close()
        sys.exit(FAILED)
    except Exception as error:  # A server may answer anything.
        if is_on(os.environ.get(_TRACEBACK)):
            raise
        complain(ClientError(f"{type(error).__name__}: {error}. This is unexpected: to report it, set {_TRACEBACK}=1"))
        sys.exit(FAILED)
