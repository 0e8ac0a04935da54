"""Arguments and options that several commands share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from workergroups_client.errors import ClientError
from workergroups_client.rank_ranges import numbers

from .command_words import refuse_bytes
from .output import Output


def complete_name(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of pools and groups for completion; none if the cluster does not answer."""
    # Every command imports this module, and --help must not wait for what only a request needs.
    from workergroups_client import Cluster
    from workergroups_client.objects.names import list_all

    try:
        cluster = Cluster(*(_said(ctx, name) for name in ("namespace", "context")))
        return sorted({each.name for each in list_all(cluster) if each.name.startswith(incomplete)})
    except ClientError:
        return []


def _said(ctx: typer.Context, name: str) -> str | None:
    """Return an option that may follow or precede the verb."""
    return ctx.params.get(name) or ctx.find_root().params.get(name)


def seconds_of(time: str, option: str = "--timeout") -> float:
    """Return how many seconds a time is, which has the units of `kubectl wait`: 90s, 10m, 1h30m."""
    parts = re.fullmatch(r"(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?", time)
    hours, minutes, seconds = (int(part or 0) for part in parts.groups()) if parts else (0, 0, 0)
    if not (total := hours * 3600 + minutes * 60 + seconds):
        raise typer.BadParameter(f"{option} must be a time such as 90s, 10m or 1h30m, and is {time!r}")
    return total


def _range(ranks: str | None) -> str | None:
    """Return a range of ranks that can be read as one."""
    if ranks is not None:
        try:
            numbers(ranks)
        except ClientError as error:
            raise typer.BadParameter(str(error)) from error
    return ranks


def variable(text: str) -> tuple[str, str]:
    """Return name and value of ``NAME=VALUE``."""
    refuse_bytes([text])
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise typer.BadParameter(
            f"{text}: write NAME=VALUE. All who can see the job can see the value: put a password into a Secret, for "
            f"--env-from or for the pool's spec.env",
            param_hint="--env",
        )
    return name, value


def processes_of(target: str | None, pool: str | None, every: bool) -> str | None:
    """Return the target if it names processes, ``all`` with --all; ``None`` if it names a group."""
    # As above: --help must not wait for what only a request needs.
    from workergroups.processes.listing import ALL, is_target

    if every:
        if target is not None:
            raise typer.BadParameter(f"--all means all processes: leave out {target}")
        return ALL
    if target is None:
        raise typer.BadParameter("name a group, or job/ID, actor/NAME or node/POD, or use --all")
    if is_target(target):
        return target
    if pool is not None:
        raise typer.BadParameter(f"{target} is a group, which --pool does not go with: it is for job/ID and the like")
    return None


LONGEST_WAIT = "24h"
Timeout = Annotated[
    str, typer.Option("--timeout", metavar="TIME", help="Give up waiting after this time, such as 90s, 10m or 1h30m.")
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace", "-n", metavar="NAMESPACE", help="The namespace; by default that of the kubeconfig's context."
    ),
]
Context = Annotated[
    str | None,
    typer.Option("--context", metavar="CONTEXT", help="A context of the kubeconfig; by default the current one."),
]
Format = Annotated[Output, typer.Option("--output", "-o", metavar="FORMAT", help="text for people, json for scripts.")]
PoolName = Annotated[
    str, typer.Argument(metavar="POOL", help="A pool, or a group on it.", autocompletion=complete_name)
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A pool, or else a group.", autocompletion=complete_name)]
Names = Annotated[
    list[str],
    typer.Argument(metavar="NAME...", help="Pools and groups; a name alone means both.", autocompletion=complete_name),
]
GroupOrProcesses = Annotated[
    str | None,
    typer.Argument(
        metavar="[TARGET]",
        help="A group; or job/ID, actor/NAME, actor/CLASS or node/POD.",
        autocompletion=complete_name,
    ),
]
OfPool = Annotated[
    str | None,
    typer.Option("--pool", metavar="POOL", help="The pool of these processes, if there are several."),
]
AllProcesses = Annotated[bool, typer.Option("--all", "-a", help="All processes of the Ray cluster.")]
Ranks = Annotated[
    str | None,
    typer.Option("--ranks", "--rank", metavar="RANKS", help="Only these ranks, such as 3 or 0-3,7.", callback=_range),
]
Command = Annotated[list[str] | None, typer.Argument(metavar="[-- CMD...]", help="A command and its arguments.")]
WorkingDir = Annotated[
    Path | None, typer.Option(metavar="DIR", help="A directory of this machine; the job runs in a copy of it.")
]
Env = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="A variable of the job; may be given several times.")
]
EnvFrom = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SECRET", help="secret/NAME or secret/NAME:KEY: hidden variables for CMD; may be given several times."
    ),
]
