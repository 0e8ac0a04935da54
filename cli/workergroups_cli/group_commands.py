"""stacks and calls: what the ranks of a group do, even while they hang."""

from __future__ import annotations

from typing import Annotated

import typer

from workergroups_client import Cluster
from workergroups_client.group import Group

from .options import Context, Format, GroupName, Namespace
from .output import Output, Teller, duration, note, print_json, print_text, table


def stacks(
    group: GroupName,
    rank: Annotated[int | None, typer.Option(help="Only this rank.")] = None,
    output: Format = Output.text,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Show the Python stacks of each rank, even while it hangs.

    The stacks include those of ranks that hang in C code.
    """
    with Teller() as tell:
        found = Group(group, Cluster(namespace, context))
        tell(f"asking the processes of group {found.name} for their stacks")
        by_rank = found.stacks()
    if rank is not None:
        if rank not in by_rank:
            raise typer.BadParameter(
                f"there is no rank {rank}: the group has {len(by_rank)} ranks", param_hint="--rank"
            )
        by_rank = {rank: by_rank[rank]}
    if output is Output.json:
        print_json(by_rank)
        return
    for _, text in sorted(by_rank.items()):
        print_text(text)


def calls(group: GroupName, output: Format = Output.text, namespace: Namespace = None, context: Context = None) -> None:
    """List the calls that ranks have not finished.

    Each has its method, whether it runs or is queued, for how long, and the job of the caller.
    """
    with Teller() as tell:
        found = Group(group, Cluster(namespace, context))
        tell(f"asking Ray for the calls of group {found.name}")
        unfinished = found.calls()
    if output is Output.json:
        print_json(unfinished)
    elif not unfinished:
        note(f"group {found.name} has no calls in flight")
    else:
        rows = [
            (call["rank"], call["method"], call["state"], duration(call["seconds"]), call["job_id"])
            for call in unfinished
        ]
        table("RANK", "METHOD", "STATE", "FOR", "JOB", rows=rows)
