"""The command with all its verbs, and its exit codes after errors."""

from __future__ import annotations

import sys
from importlib import metadata
from typing import Annotated, Any

import typer

from workergroups_client import ClientError

from . import job_commands
from .check_command import check
from .connect_commands import connect, dashboard
from .debug_command import debug
from .exit_codes import FAILED, INTERRUPTED
from .group_commands import calls, stacks
from .lifecycle_commands import down, restart, resume, suspend, up
from .options import Context, Namespace
from .output import err
from .pod_commands import exec_, logs
from .status_command import status

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Worker groups on Kubernetes: pools, groups and jobs by their names.",
)


def _say_version(is_asked: bool) -> None:
    if is_asked:
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


app.command()(up)
app.command()(status)
app.command()(check)
app.command()(connect)
app.command()(dashboard)
app.add_typer(job_commands.app, name="job")
app.command()(logs)
app.command()(stacks)
app.command()(calls)
app.command()(debug)
app.command("exec")(exec_)
app.command()(restart)
app.command()(suspend)
app.command()(resume)
app.command()(down)


def main() -> None:
    """Run the command; print an error that the user can fix as a message without a traceback."""
    try:
        app()
    except ClientError as error:
        err.print(f"error: {error}", markup=False)
        sys.exit(FAILED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # `| head`
        sys.stderr.close()
        sys.exit(FAILED)
