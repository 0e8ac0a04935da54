"""Arguments and options that several commands share."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from workergroups_client import Cluster
from workergroups_client.errors import ClientError
from workergroups_client.names import list_all

from .output import Output


def complete_name(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of pools and groups for completion; none if the cluster does not answer."""
    try:
        cluster = Cluster(*(_said(ctx, name) for name in ("namespace", "context")))
        return sorted({each.name for each in list_all(cluster) if each.name.startswith(incomplete)})
    except ClientError:
        return []


def _said(ctx: typer.Context, name: str) -> str | None:
    """Return an option that may follow or precede the verb."""
    return ctx.params.get(name) or ctx.find_root().params.get(name)


def seconds_of(timeout: str) -> float:
    """Return how long a timeout is, which has the units of `kubectl wait`: 90s, 10m, 1h30m."""
    parts = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", timeout)
    hours, minutes, seconds = (int(part or 0) for part in parts.groups()) if parts else (0, 0, 0)
    if not (total := hours * 3600 + minutes * 60 + seconds):
        raise typer.BadParameter(f"--timeout must be a time such as 90s, 10m or 1h30m, and is {timeout!r}")
    return total


LONGEST_WAIT = "24h"
Timeout = Annotated[
    str, typer.Option("--timeout", metavar="TIME", help="Give up waiting after this time, such as 90s, 10m or 1h30m.")
]
Namespace = Annotated[
    str | None, typer.Option("--namespace", "-n", help="The namespace; by default that of the kubeconfig's context.")
]
Context = Annotated[
    str | None, typer.Option("--context", help="A context of the kubeconfig; by default the current one.")
]
Format = Annotated[Output, typer.Option("--output", "-o", help="text for people, json for scripts.")]
PoolName = Annotated[
    str, typer.Argument(metavar="POOL", help="A pool, or a group on it.", autocompletion=complete_name)
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A pool, or else a group.", autocompletion=complete_name)]
GroupName = Annotated[str, typer.Argument(metavar="GROUP", help="A group.", autocompletion=complete_name)]
Command = Annotated[list[str] | None, typer.Argument(metavar="[-- CMD]", help="A command and its arguments.")]
